package node

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Version of Apache Kafka that is run. pom.xml names the same.
const Version = "4.1.1"

// javaMin is the oldest Java that runs it.
const javaMin = 17

//go:embed pom.xml log4j2.yaml
var files embed.FS

// errMissing marks what only somebody else can install.
var errMissing = errors.New("not installed")

// cacheDir is where the jars are kept.
func cacheDir() (string, error) {
	if dir := os.Getenv("ISOWATCH_KAFKA_DIR"); dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "isowatch", "kafka-"+Version), nil
}

// java finds a Java that is new enough.
func java() (string, error) {
	path := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if os.Getenv("JAVA_HOME") == "" {
		var err error
		if path, err = exec.LookPath("java"); err != nil {
			return "", fmt.Errorf("java: %w (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)", errMissing)
		}
	}
	out, err := exec.Command(path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w: %s", path, err, out)
	}
	m := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s -version said %q", path, out)
	}
	if v, _ := strconv.Atoi(string(m[1])); v < javaMin {
		return "", fmt.Errorf("java %d or later: %w (%s is version %d)", javaMin, errMissing, path, v)
	}
	return path, nil
}

// What is fetched comes over a network, which may fail now and then.
const (
	fetchTries = 3
	fetchMax   = 10 * time.Minute // of all tries
)

// fetchPause is how long is waited before the second try, before the third twice that.
var fetchPause = 5 * time.Second

// install fetches the jars unless they are there, and returns their folder.
// Several processes may call it at once, as tests of several packages do: one fetches, as
// Maven's local repository does not stand several at once, and the others wait for it.
func install(ctx context.Context) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	libs := filepath.Join(dir, "libs")
	if _, err := os.Stat(libs); err == nil {
		return libs, nil // without the lock, for which the folder would have to be writable
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("mvn: %w (Debian and Ubuntu: apt-get install maven)", errMissing)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(libs); err == nil {
		return libs, nil // another was first
	}
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	pom, err := files.ReadFile("pom.xml")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchMax)
	defer cancel()
	for n := 1; ; n++ {
		if err = fetch(ctx, mvn, work); err == nil || n == fetchTries {
			break
		}
		select {
		case <-time.After(time.Duration(n) * fetchPause):
		case <-ctx.Done():
			return "", err
		}
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, "libs"), libs); err != nil {
		if _, there := os.Stat(libs); there != nil {
			return "", err
		}
	}
	return libs, nil
}

// fetch has Maven put the jars into the folder libs of work.
func fetch(ctx context.Context, mvn, work string) error {
	cmd := exec.CommandContext(ctx, mvn, "--quiet", "--batch-mode", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(work, "libs"))
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetching Kafka %s with Maven: %w: %s", Version, err, out)
	}
	return nil
}
