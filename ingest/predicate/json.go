package predicate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// textOf is the text of a condition that is given as a tree:
//
//	["and", [">=", {"column": "v1"}, 10], ["not", ["in", {"column": "v2", "mod": 3}, [0, "x", null]]]]
//	["like", {"column": "name"}, "a%"]   ["is-null", {"column": "name"}]   true
func textOf(tree string) (string, error) {
	d := json.NewDecoder(strings.NewReader(tree))
	d.UseNumber()
	var n any
	if err := d.Decode(&n); err != nil {
		return "", fmt.Errorf("the condition is no JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", fmt.Errorf("something stands behind the condition's JSON, at byte %d", d.InputOffset())
	}
	return conditionText(n, 0)
}

// conditionText is the text of a part that is true or false, and within so many others.
func conditionText(n any, depth int) (string, error) {
	if depth > depthMax {
		return "", fmt.Errorf("more than %d conditions within each other", depthMax)
	}
	if b, is := n.(bool); is {
		return fmt.Sprint(b), nil
	}
	list, _ := n.([]any)
	if len(list) < 2 {
		return "", fmt.Errorf("want true, false, or a list with an operator and what it is of, found %.100v", n)
	}
	op, parts := fmt.Sprint(list[0]), list[1:]
	of, want := operandText, 2
	switch op {
	case "and", "or", "not":
		of, want = func(n any) (string, error) { return conditionText(n, depth+1) }, len(parts)
	case "is-null":
		want = 1
	case "between":
		want = 3
	case "==", "!=", "<", "<=", ">", ">=", "in", "like":
	default:
		return "", fmt.Errorf("no operator is called %.40q", op)
	}
	if op == "not" {
		want = 1
	}
	if len(parts) != want {
		return "", fmt.Errorf("%q is of %d, not of %d", op, want, len(parts))
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		var err error
		if texts[i], err = of(p); err != nil {
			return "", err
		}
	}
	switch op {
	case "and", "or":
		return "(" + strings.Join(texts, " "+op+" ") + ")", nil
	case "not":
		return "!(" + texts[0] + ")", nil
	case "is-null":
		return texts[0] + " is null", nil
	case "between":
		return texts[0] + " between " + texts[1] + " and " + texts[2], nil
	}
	return texts[0] + " " + op + " " + texts[1], nil
}

// operandText is the text of a column, a constant, or a list of constants.
func operandText(n any) (string, error) {
	switch n := n.(type) {
	case string:
		return string(record.AppendJSONString(nil, n)), nil
	case nil:
		return "null", nil
	case []any:
		texts := make([]string, len(n))
		for i, c := range n {
			var err error
			if _, is := c.([]any); is {
				return "", fmt.Errorf("want a constant, found the list %.100v", c)
			}
			if texts[i], err = operandText(c); err != nil {
				return "", err
			}
		}
		return "(" + strings.Join(texts, ", ") + ")", nil
	case map[string]any:
		name, is := n["column"].(string)
		text := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		if mod, divided := n["mod"].(json.Number); divided {
			text += " % " + mod.String()
			delete(n, "mod")
		}
		if !is || len(n) != 1 {
			return "", fmt.Errorf(`want a column, {"column": NAME}, perhaps with "mod": INTEGER, found %.100v`, n)
		}
		return text, nil
	}
	return fmt.Sprint(n), nil // a number, true or false
}
