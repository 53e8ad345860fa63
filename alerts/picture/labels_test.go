package picture_test

import (
	"image"
	"regexp"
	"strconv"
	"testing"

	"github.com/isowatch/isowatch/alerts/picture"
	"github.com/isowatch/isowatch/internal/lab/made"
)

var (
	labelRect = regexp.MustCompile(`<rect x="(-?\d+)" y="(-?\d+)" width="(\d+)" height="(\d+)" rx="4" class="bg"/>`)
	barRect   = regexp.MustCompile(`<rect x="(-?\d+)" y="(-?\d+)" width="(\d+)" height="(\d+)" rx="8" class="bg"/>`)
	arrowHead = regexp.MustCompile(`<path d="M(-?\d+) (-?\d+)L(-?\d+) (-?\d+)L(-?\d+) (-?\d+)Z" class="a`)
)

// numbers are the groups of every match.
func numbers(t *testing.T, re *regexp.Regexp, svg []byte) (out [][]int) {
	t.Helper()
	for _, m := range re.FindAllSubmatch(svg, -1) {
		var row []int
		for _, s := range m[1:] {
			n, err := strconv.Atoi(string(s))
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, n)
		}
		out = append(out, row)
	}
	return out
}

func rectangles(rows [][]int) (out []image.Rectangle) {
	for _, r := range rows {
		out = append(out, image.Rect(r[0], r[1], r[0]+r[2], r[1]+r[3]))
	}
	return out
}

// In a timeline no label of an edge touches another one, nor hides a transaction or where
// an arrow leads to.
func TestLabelsHideNothing(t *testing.T) {
	all := 0
	for _, c := range made.Cases(t) {
		svg := picture.Timeline(c.Alert)
		labels := rectangles(numbers(t, labelRect, svg))
		all += len(labels)
		var others []image.Rectangle
		others = append(others, rectangles(numbers(t, barRect, svg))...)
		for _, a := range numbers(t, arrowHead, svg) {
			others = append(others, image.Rect(a[0], a[1], a[2], a[3]).Union(image.Rect(a[0], a[1], a[4], a[5])))
		}
		for i, l := range labels {
			for _, o := range labels[:i] {
				if l.Inset(-2).Overlaps(o) {
					t.Errorf("%s: labels at %v and %v touch", c.Title, l, o)
				}
			}
			for _, o := range others {
				if l.Overlaps(o) {
					t.Errorf("%s: the label at %v hides what is at %v", c.Title, l, o)
				}
			}
		}
	}
	if all < 30 {
		t.Errorf("only %d labels were looked at", all)
	}
}
