// Package file reads records from a file, one per line: to its end, or for ever
// as `tail -F` does; from standard input; and from whoever posts them.
//
// A followed file may not exist yet, grow, be cut to nothing, be renamed away
// and be made anew. What happened is found by looking again, after Poll at the
// latest:
//
//	at the end of the file, and the path is …
//	  the same file, longer      its head is as it was?  yes: read on
//	                                                     no:  it was rewritten
//	  the same file, shorter     it was truncated: gap, read it from its beginning
//	  another file               the old one was rotated away: what is left of it
//	                             is read, then the new one from its beginning
//	  nothing                    wait
//
// A line is a record once its newline is there. The last line of a file that is
// over (not followed, or rotated away) is one without.
//
// # Offsets
//
// An offset is the number of bytes before a line. It means something only in
// the file it was taken from, and a path is not a file: so a hash of the
// file's head goes with it (source.Batch.Identity), over as many of its bytes as
// lie before the offset, at most a kilobyte. Where it does not fit when reading
// resumes, the file is another one and is read from its beginning, with a gap
// for what was not seen of the old one. The head rather than the inode: inodes
// are reused, and copies have others.
//
// # Memory
//
// A read takes at most 256 KiB; a line longer than MessageMax is passed over
// without being kept (source.Message.Oversize).
package file
