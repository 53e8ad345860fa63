package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/file"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/window/store"
)

// Options say what an App does.
type Options struct {
	// Config is a valid configuration.
	Config *config.Config
	Log    zerolog.Logger
	// UntilEnd ends Run where the input ends now; see Reports.
	UntilEnd bool
	Stdin    io.Reader
	// Begins says that Stdin does not go on where an earlier run's ended.
	Begins bool
	// Stdout gets alerts with alerts.stdout; nil: os.Stdout.
	Stdout io.Writer
	// Rebuild sets the store aside and begins with a new one, from the input.
	Rebuild bool
	// Version is what the page shows of the program.
	Version string
	// LogLevel is that of Log, for Reload; nil: it stays as it is.
	LogLevel *LogLevel
	// Store replaces the one at Config.Store.Path; nil: none does. The App closes
	// it.
	Store store.Store
	// Canary is how what works on a database in this process is doing, for page, metrics and operational alerts; nil:
	// nothing does. It is called by any goroutine.
	Canary func() page.Canary
	// Proxy is what goes through a proxy in this process, for the metrics; nil: there is none. It is called by any
	// goroutine.
	Proxy func() Proxy
	// Found is called with each anomaly that this run is the first to find, before it is told of, which may be much later;
	// nil: nothing is. It is called by any goroutine.
	Found func(alerts.Alert)
}

// Proxy is what has gone through a proxy.
type Proxy struct {
	Connections  int
	Transactions map[string]int64 // by outcome
	Dropped      int64            // records
	Unclear      []Unclear
	Blind        bool // nothing is recorded any more
}

// Unclear is how often something was not recorded of a statement.
type Unclear struct {
	Reason, Statement string // Statement has no literals
	Count             int64
}

// App is one monitor. New makes it, Run runs it once.
type App struct {
	setting
	resumed bool
	// stopping: Run is asked to end.
	stopping atomic.Bool
	stdin    io.Reader
	begins   bool // Options.Begins
	stdout   io.Writer

	contact contact      // with the source
	posted  *file.Posted // the source, if that is source.http; else nil
	// data is what the page shows; nil: there is no page.
	data   page.Data
	status *status
	// opening opens the store, which is nil until there is room for it.
	opening func() (store.Store, error)
	store   store.Store
	server  *server // nil without http.listen
	// announces: the store is that of the configuration, and says where its monitor is.
	announces bool

	dispatcher *deliver.Dispatcher
	teller     *teller

	reports []report.History
	ended   bool

	// reloading guards what follows: how to put a configuration into effect, and the
	// one that was read last.
	reloading sync.Mutex
	reloaders []reloader
	last      *config.Config
	certs     *certificates // nil: no TLS
}

// tuning are sizes that tests make small, so that little input meets every border.
type tuning struct {
	records    int             // of a batch at most; 0: as decode has it
	groupBytes int             // of the journal in one commit at least
	checkpoint time.Duration   // between two checkpoints of a history at most
	held       int64           // bytes of the journal that are held while the disk is full
	queue      int             // records that wait for a history
	backlog    int64           // bytes of the journal that are left for a history; 0: a share of the store
	piece      time.Duration   // of proving, after which what is proved is stored
	reading    func()          // called before the input is read
	slow       func(db string) // called before a history takes an entry
	proving    func(*worker)   // called before an anomaly is proved
	segments   bool            // also where the end of the input is to be told
	seeds      int             // stream.Config.MaxSeeds
	reopen     time.Duration   // between two attempts to open a store on a full disk
	drain      time.Duration   // that what was read is worked off after a stop, where it can't be read again
}

var defaultTuning = tuning{groupBytes: groupBytesMax, checkpoint: checkpointEvery, held: heldBytesMax,
	queue: queueRecordsMax, reopen: reopenEvery, drain: drainMax, piece: pieceEvery}

// aheadMax: more than a minute before the broker has a record it can't
// have ended, and must not drag the watermark along. Where there is no broker that is said of one that
// is so far ahead of all others.
const aheadMax = time.Minute

// New opens the store and the HTTP server; the source is opened by Run, which
// waits for it, and for room for the store if the disk is full. The errors are config.Errors for an invalid
// configuration, else failures of the environment. Without Run, call Close.
func New(o Options) (*App, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	a := &App{stdin: o.Stdin, begins: o.Begins, stdout: o.Stdout,
		setting: setting{cfg: o.Config, log: o.Log, untilEnd: o.UntilEnd, version: o.Version, canary: o.Canary, proxy: o.Proxy,
			found: o.Found, metrics: newMetrics(), tuning: defaultTuning}}
	switch src := o.Config.Source; {
	case src.Kafka != nil:
		a.name, a.origin = src.Kafka.Topic, originOf("kafka", src.Kafka.Topic)
	case src.File != nil:
		a.name, a.origin = src.File.Path, originOf("file", src.File.Path)
	case src.HTTP != nil:
		a.name, a.origin = "POST "+page.RecordsPath, originOf("http", page.RecordsPath)
		a.posted = file.NewPosted(a.name)
	default:
		a.name = file.Stdin
	}
	a.status = newStatus(&a.setting)
	a.data = a.status
	a.metrics.stalled.set(func() map[string]float64 {
		return map[string]float64{"": a.pulse.longest(time.Now()).Seconds()}
	})
	a.metrics.build.WithLabelValues(a.version, runtime.Version()).Set(1)
	a.metrics.reloaded.Set(1)
	a.metrics.reloadedAt.SetToCurrentTime()
	a.ready.wait(whoInput, "nothing has been read yet")
	var err error
	rebuild := o.Rebuild
	a.opening = func() (store.Store, error) { return a.openStore(&rebuild) }
	if a.store = o.Store; a.store == nil {
		if a.store, err = a.opening(); a.lacksRoom(err) {
			err = nil // Run waits for it
		}
		if err != nil {
			return nil, err
		}
	}
	if o.Config.HTTP.Listen != "" || o.Config.HTTP.Admin != "" {
		if a.server, err = a.serve(); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	a.announces = o.Store == nil
	if a.store != nil {
		a.announce()
	}
	a.last = o.Config
	a.reloadOwn(o.LogLevel)
	return a, nil
}

// leastRetain is window.retain where it is 0, which to the store means for ever.
const leastRetain = time.Nanosecond

// drainMax is how long a stop works off what was read of an input that can't be read again.
const drainMax = time.Second

// reopenEvery is how often it is tried to open a store on a full disk.
const reopenEvery = time.Second

// lacksRoom tells whether err is that the disk is full, and says so: in the log
// once, in /readyz as long as it lasts.
func (a *App) lacksRoom(err error) bool {
	if !errors.Is(err, store.ErrFull) {
		return false
	}
	a.metrics.storeHolding.Set(1)
	if a.ready.wait(whoStore, err.Error()) {
		a.metrics.storeFull.Inc()
		a.log.Error().Err(err).Msg("the monitor waits for room on the disk; nothing is read until then")
	}
	return true
}

// awaitStore opens the store if it is not open yet, waiting for room as long as it
// takes; the error may be ctx's.
func (a *App) awaitStore(ctx context.Context) error {
	if a.store != nil {
		return nil
	}
	return a.awaitRoom(ctx, func() error {
		st, err := a.opening()
		if err != nil {
			return err
		}
		a.store = st
		a.announce()
		return nil
	})
}

// awaitRoom writes, again and again as long as there is no room on the disk; the error may be ctx's.
func (a *App) awaitRoom(ctx context.Context, write func() error) error {
	t := time.NewTicker(a.tuning.reopen)
	defer t.Stop()
	for {
		err := write()
		if err == nil {
			a.metrics.storeHolding.Set(0)
			if a.ready.ready(whoStore) {
				a.log.Warn().Msg("there is room for the store: the monitor begins")
			}
			return nil
		}
		if !a.lacksRoom(err) {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openStore opens the store with an outbox for each receiver; for rebuild a new
// one, the old one being set aside, which is done once.
func (a *App) openStore(rebuild *bool) (store.Store, error) {
	o := store.Options{Path: a.cfg.Store.Path, SyncWrites: a.cfg.Store.Sync, MaxBytes: int64(a.cfg.Store.MaxBytes),
		Retain: max(a.cfg.Window.Retain, leastRetain), Stopping: a.stopping.Load,
		Logger: a.log.With().Str("part", "store").Logger().Level(zerolog.WarnLevel)}
	o.Receivers = receiverNames(a.cfg)
	if *rebuild {
		aside, err := store.SetAside(o.Path, time.Now())
		switch {
		case err == nil:
			a.log.Warn().Str("store", aside).Msg("the store was set aside; a new one is made from the input")
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		*rebuild = false
	}
	st, err := store.Open(o)
	if err != nil {
		return nil, err // not st: a nil *Badger is no nil Store
	}
	return st, nil
}

// Addr is the address of http.listen, empty without one.
func (a *App) Addr() string {
	if a.server == nil || a.server.public == nil {
		return ""
	}
	return a.server.public.Addr().String()
}

// Ended tells whether the input ended, so that there are Reports.
func (a *App) Ended() bool { return a.ended }

// Reports are the verdicts at the end of the input, a history each, by name.
func (a *App) Reports() []report.History { return a.reports }

// Resumed tells, after Run, whether the input was read from offsets that an
// earlier run stored.
func (a *App) Resumed() bool { return a.resumed }

// Close gives up what New opened. Run does it too.
func (a *App) Close() error {
	var errs []error
	a.unannounce()
	if a.server != nil {
		errs = append(errs, a.server.stop())
		a.server = nil
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
		a.store = nil
	}
	return errors.Join(errs...)
}

// Run watches until ctx ends, which is a graceful stop and no error, or the
// input does. A *source.StartupError says what is wrong with the input; other
// errors are failures of the environment.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() {
		if err = errors.Join(err, a.Close()); errors.Is(err, store.ErrStuck) { // whoever met it says so
			err = fmt.Errorf("store %s: %w", a.cfg.Store.Path, store.ErrStuck)
		}
	}()
	defer context.AfterFunc(ctx, func() { a.stopping.Store(true) })()
	defer a.supervise(ctx)()
	a.introduce()

	receivers, err := Receivers(a.cfg, a.stdout)
	if err != nil {
		return err
	}
	told := &addressees{log: a.log, stdout: a.stdout, now: receivers}
	defer func() { err = errors.Join(err, told.Close()) }()
	if err := a.awaitStore(ctx); err != nil {
		return stopped(ctx, err)
	}
	if a.veil, err = newVeil(a.cfg); err != nil {
		return err
	}
	k := newKeeper(&a.setting, a.store)
	if a.posted != nil {
		k.durable = a.posted.Stored
	}
	k.recall(context.WithoutCancel(ctx))
	a.metrics.outbox.set(k.waiting)
	if err = a.begin(context.WithoutCancel(ctx), k, receivers); err != nil {
		return advise(err)
	}
	a.status.begin(k, a.teller)
	a.showCanary()
	a.showProxy()
	a.metrics.completeAge.set(a.status.completeAges)
	a.metrics.promises.set(a.status.promises)
	told.dispatcher = a.dispatcher
	a.onReload(told.replace, "alerts.webhooks", "alerts.kafka")
	delivery, stopDelivery := context.WithCancel(context.Background())
	var delivering sync.WaitGroup
	delivering.Go(func() { a.dispatcher.Run(delivery) })
	telling, stopTelling := context.WithCancel(delivery)
	delivering.Go(func() { a.teller.run(telling) })
	delivering.Go(func() { a.maintain(delivery) })
	delivering.Go(func() { a.status.watch(delivery) })
	defer delivering.Wait()
	defer stopDelivery()
	defer stopTelling()

	if err := a.watch(ctx, k); err != nil {
		return advise(err)
	}
	if err := a.teller.finish(context.WithoutCancel(ctx), stopTelling); err != nil {
		return advise(err)
	}
	// What was found last is delivered before the answer is given, or before the stop,
	// if the receivers are there; otherwise it waits in the store for the next start.
	wait := flushMax
	if !a.ended {
		wait = partingMax
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	if a.ended {
		defer context.AfterFunc(ctx, cancel)()
	}
	if err := a.dispatcher.Flush(flush); err != nil {
		a.log.Warn().Err(err).Msg("alerts are left to be delivered at the next start")
	}
	return nil
}

// begin makes what tells of alerts, from a store to receivers.
func (a *App) begin(ctx context.Context, k *keeper, receivers []*Receiver) (err error) {
	a.dispatcher = a.newDispatcher(k, receivers)
	t := newTeller(&a.setting, k, a.dispatcher.Wake, a.links)
	if err := t.restore(ctx); err != nil {
		return err
	}
	a.teller = t
	a.onReload(t.reconfigure, tellerKeys...)
	return nil
}

// introduce says which monitor begins and where its page is.
func (a *App) introduce() {
	e := a.log.Info().Str("version", a.version).Str("store", a.cfg.Store.Path)
	if at := a.pageURL(); at != "" {
		e = e.Str("page", at)
	}
	e.Msg("the monitor begins")
}

// showCanary has the metrics ask what works on a database here, if anything does.
func (a *App) showCanary() {
	if a.canary == nil {
		return
	}
	show := func(g *gauges, value func(*page.CanaryNode) float64) {
		g.set(func() map[string]float64 {
			out := map[string]float64{}
			for _, n := range a.canary().Nodes {
				if v := value(&n); v >= 0 { // else it is not known
					out[n.Name] = v
				}
			}
			return out
		})
	}
	show(a.metrics.workUp, func(n *page.CanaryNode) float64 { return float64(bit(n.State != page.NodeUnreachable)) })
	show(a.metrics.workStalled, func(n *page.CanaryNode) float64 {
		if n.State != page.NodeStalled {
			return 0
		}
		return time.Since(time.Unix(0, n.Since)).Seconds()
	})
	show(a.metrics.workLag, func(n *page.CanaryNode) float64 { return n.Lag })
	show(a.metrics.workConnections, func(n *page.CanaryNode) float64 { return float64(n.Connections) })
}

// showProxy has the metrics ask what goes through the proxy, if there is one.
func (a *App) showProxy() {
	if a.proxy == nil {
		return
	}
	show := func(g *gauges, values func(p Proxy, out map[string]float64)) {
		g.set(func() map[string]float64 {
			out := map[string]float64{}
			values(a.proxy(), out)
			return out
		})
	}
	m := a.metrics
	show(m.proxyConnections, func(p Proxy, out map[string]float64) { out[""] = float64(p.Connections) })
	show(m.proxyDropped, func(p Proxy, out map[string]float64) { out[""] = float64(p.Dropped) })
	show(m.proxyBlind, func(p Proxy, out map[string]float64) { out[""] = float64(bit(p.Blind)) })
	show(m.proxyTransactions, func(p Proxy, out map[string]float64) {
		for outcome, n := range p.Transactions {
			out[outcome] = float64(n)
		}
	})
	show(m.proxyUnclear, func(p Proxy, out map[string]float64) {
		for _, u := range p.Unclear {
			text := strings.ReplaceAll(strings.ToValidUTF8(u.Statement, "\uFFFD"), labelEnd, " ")
			out[u.Reason+labelEnd+text] += float64(u.Count)
		}
	})
}

// maintainEvery is how often the store frees space.
const maintainEvery = time.Minute

// maintain lets the store free space until ctx ends.
func (a *App) maintain(ctx context.Context) {
	t := time.NewTicker(maintainEvery)
	defer t.Stop()
	for {
		if s, err := a.store.Stats(ctx); err == nil {
			a.metrics.storeBytes.Set(float64(s.DiskBytes))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := a.store.Maintain(ctx); err != nil && ctx.Err() == nil {
			a.log.Error().Err(err).Msg("the store could not free space; it is tried again")
		}
	}
}

// watch restores the state of the run before and reads on.
func (a *App) watch(ctx context.Context, k *keeper) (err error) {
	began := time.Now()
	s, err := a.previous(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	a.greet(s)
	config, err := a.fingerprint()
	if err != nil {
		return err
	}
	// What is durable must not depend on ctx: a graceful stop commits.
	group, working := errgroup.WithContext(context.WithoutCancel(ctx))
	going, halt := context.WithCancel(working)
	defer halt()
	defer context.AfterFunc(ctx, func() {
		if a.origin == "" { // else what waits is in the journal; the next run has it
			select {
			case <-time.After(a.tuning.drain):
			case <-going.Done():
			}
		}
		halt()
		a.log.Info().Msg("stopping") // whatever anybody is busy with
	})()
	a.contact.every = a.cfg.Solver.Every
	a.contact.alone = a.untilEnd || a.cfg.Source.File != nil
	in := &ingest{
		setting: &a.setting, keeper: k, teller: a.teller, status: a.status, contact: &a.contact, config: config,
		complete: s.complete || s.unread && s.fresh(a.cfg.Source.Kafka), next: s.next, anew: s.anew,
		unheard: (s.foreign || a.ends() && a.origin != "") && s.again(a.cfg.Source.Kafka),
		workers: map[string]*worker{},
		group:   group, working: working, going: going, began: began, now: time.Now,
		beat:   a.pulse.of("input"),
		causes: causes{}, pool: newPool(a.cfg.Window.Histories),
	}
	// However this ends, the workers do too.
	defer func() {
		for _, w := range in.order {
			w.queue.close()
		}
		err = errors.Join(err, group.Wait())
		if err == nil && in.ended {
			a.conclude(in.order)
		}
		if err == nil && !a.ended && ctx.Err() != nil {
			in.leave()
		}
		a.metrics.conclude(a.log, time.Since(began), a.reports)
	}()
	if err := in.restore(working, s); err != nil {
		if errors.Is(err, errHalted) {
			return nil
		}
		in.abort(err)
		return err
	}
	src, err := a.open(ctx, s)
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	in.partitions = src.Partitions
	decoding := a.newStage(src, s)
	defer decoding.Close()
	in.stage = decoding
	if s.since > 0 { // with the monitor the source may have been away, and nobody could post
		a.contact.restarts(time.Now(), time.Unix(0, s.since), src.Partitions())
	}
	if err := in.run(ctx); err != nil {
		in.abort(err)
		return err
	}
	return nil
}

// errHalted is what work ends with that the next run will do.
var errHalted = errors.New("the monitor is asked to stop")

// conclude collects the reports of all histories. There are none of those that were
// asked to stop before they were through.
func (a *App) conclude(workers []*worker) {
	for _, w := range workers {
		if w.report == nil {
			return
		}
	}
	a.ended = true
	for _, w := range workers {
		a.reports = append(a.reports, *w.report)
	}
}

// greet says how this run begins.
func (a *App) greet(s *previousRun) {
	a.resumed = len(s.resume) > 0
	switch {
	case a.resumed:
		a.log.Info().Int("histories", len(s.checkpoints)).Msg("going on where the last run stopped")
		if len(s.checkpoints) > 0 {
			a.ready.wait(whoRestart, "the histories have not caught up yet with what the last run had read")
		}
	case a.origin == "" && !s.unread && a.cfg.Coverage == record.CoverageComplete:
		a.log.Warn().Msg("coverage is partial: standard input may go on where an earlier run's ended")
	case !s.fresh(a.cfg.Source.Kafka) && a.cfg.Coverage == record.CoverageComplete:
		a.log.Warn().Msg("coverage is partial: the input is not read from its beginning")
	}
}

// flushMax is how long the end of the input waits for receivers.
const flushMax = 30 * time.Second

// partingMax is how long a stop waits for them.
const partingMax = 2 * time.Second

// stopped hides the error of a source that was given up because ctx ended.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// delivered counts and logs an attempt to deliver.
func (a *App) delivered(e deliver.Event) {
	a.status.delivered(e)
	a.metrics.deliveries.WithLabelValues(e.Receiver, string(e.Outcome)).Inc()
	switch e.Outcome {
	case deliver.Delivered:
		a.metrics.arrivedAt(e.Receiver, e.ID, time.Now())
		a.log.Info().Str("receiver", e.Receiver).Str("id", e.ID).Int("attempt", e.Attempt).Msg("alert delivered")
	case deliver.Retrying:
		if e.Attempt == 1 {
			a.log.Warn().Err(e.Err).Str("receiver", e.Receiver).Str("id", e.ID).
				Str("wait", e.Wait.Round(time.Millisecond).String()).Msg("alert not delivered yet; it is tried again until it is")
		}
	case deliver.Filtered:
		a.log.Debug().Str("receiver", e.Receiver).Str("id", e.ID).Msg("alert is not for this receiver")
	case deliver.Resent:
		a.log.Debug().Str("receiver", e.Receiver).Msg("told again what is active")
	default:
		a.log.Error().Err(e.Err).Str("receiver", e.Receiver).Str("id", e.ID).Msg("alert not delivered")
	}
}

// open opens the source, waiting for it as long as it takes.
func (a *App) open(ctx context.Context, s *previousRun) (source.Source, error) {
	switch src := a.cfg.Source; {
	case src.Kafka != nil:
		defer a.impatient(fmt.Errorf("kafka topic %q: no broker of %s has told of it yet", src.Kafka.Topic,
			strings.Join(src.Kafka.Brokers, ", ")))()
		return kafka.Open(ctx, a.kafkaOptions(src.Kafka, s.resume))
	case src.File != nil:
		return file.Open(file.Options{Path: src.File.Path, Follow: src.File.Follow && !a.untilEnd, Offsets: s.resume,
			OnRetry: a.retrying})
	case src.HTTP != nil:
		a.posted.Begin(s.seen[0]) // what is before it can't be read again
		return a.posted, nil
	default:
		return file.NewStream(file.Stdin, a.stdin, 0), nil
	}
}

// answersAfter is how long a source may take to answer before that is told.
const answersAfter = time.Second

// impatient tells of err, as of a failure that is tried again, if what begins takes long and has not
// failed meanwhile. What it returns is to be called when that is over; nothing is told after it.
func (a *App) impatient(err error) (over func()) {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-done:
		case <-time.After(answersAfter):
			if _, failed := a.ready.waiting(whoSource); !failed {
				a.retrying(err)
			}
		}
	})
	return func() { close(done); waiting.Wait() }
}

func (a *App) kafkaOptions(k *config.Kafka, resume map[int]int64) kafka.Options {
	return kafka.Options{
		Connection: Connection("source.kafka", k.Brokers, k.TLS, k.SASL),
		Topic:      k.Topic,
		Offsets:    resume,
		UntilEnd:   a.untilEnd,
		OnRetry:    a.retrying,
		OnWorks:    func(partition int) { a.contact.works(partition, time.Now()) },
		OnWarning:  func(what string) { a.log.Warn().Msg(what) },
		Latest:     k.Start.At == config.StartLatest,
		Since:      k.Start.Time,
	}
}

// retrying tells of a failure of the source that is tried again: in the log the
// first of an outage, in /readyz the latest as long as it lasts.
func (a *App) retrying(err error) {
	a.metrics.retries.Inc()
	a.contact.fails(err, time.Now())
	level := zerolog.DebugLevel
	if a.ready.wait(whoSource, err.Error()) {
		level = zerolog.WarnLevel
	}
	a.log.WithLevel(level).Err(err).Msg("the source fails; it is tried again until it works")
}

// setting is what every stage has and none changes: what it is asked for, and where it tells how it is doing. Whatever
// else passes between stages is a field or an argument of theirs.
type setting struct {
	cfg     *config.Config
	log     zerolog.Logger
	metrics *metrics
	ready   readiness
	pulse   pulse
	tuning  tuning
	version string // of the program
	// untilEnd: the input ends where it ends now.
	untilEnd bool
	// name is what positions and reports call the input, origin what the store
	// does; empty for an input that can't be read again.
	name, origin string
	canary       func() page.Canary // nil: there is none
	proxy        func() Proxy       // likewise
	found        func(alerts.Alert) // Options.Found
	// veil hides keys and values in alerts, from Run on.
	veil veil.Veil
}
