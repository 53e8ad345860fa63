package app

import (
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/codec/protobuf"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/source"
)

// contentTypeProtobuf is the content type of the fast encoding.
const contentTypeProtobuf = "application/x-protobuf"

// newStage begins to read and decode src behind what was stored.
func newStage(src source.Source, s *stored, records int) *decode.Stage {
	return decode.New(src, decode.Options{
		Formats: map[string]func() decode.Format{
			decode.ContentTypeJSON: func() decode.Format { return codec.New(codec.Options{}) },
			contentTypeProtobuf:    func() decode.Format { return protobuf.New(codec.Options{}) },
		},
		RecordsMax: records,
		Offsets:    s.resume,
		Seen:       s.seen,
	})
}
