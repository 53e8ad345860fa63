package sql

import (
	"errors"
	"strings"
)

// TokenKind is what a token of SQL is.
type TokenKind uint8

const (
	TokenWord   TokenKind = iota // a name or keyword, in lower case
	TokenName                    // a name in double quotes, as it stands
	TokenNumber                  // a literal; its text is a constant of the execution
	TokenString                  // likewise
	TokenSealed                  // a literal whose value is not worked out: escapes, bits, dollar quotes
	TokenParam                   // $1, $2, …
	TokenSign                    // operators and punctuation
)

// Token is a token. Of a literal text is its value, which does not count where statements are compared.
type Token struct {
	Kind TokenKind
	Text string
	N    int // of a literal: how many are before it
}

// IsLiteral tells whether a token's text is a value of the execution.
func (t Token) IsLiteral() bool {
	return t.Kind == TokenNumber || t.Kind == TokenString || t.Kind == TokenSealed
}

// Is tells whether a token is this keyword or operator.
func (t Token) Is(text string) bool {
	return (t.Kind == TokenWord || t.Kind == TokenSign) && t.Text == text
}

var (
	errUnterminated = errors.New("a quote or comment that does not end")
	errCharacter    = errors.New("a character that SQL does not have")
)

// operators are the characters of which operators are made; of those in special one may end in + or -.
const (
	operators = "+-*/<>=~!@#%^&|`?"
	special   = "~!@#%^&|`?"
)

// Lex is Scan, with words in lower case.
func Lex(out []Token, text string) ([]Token, error) {
	from := len(out)
	out, err := Scan(out, text)
	lower(out[from:])
	return out, err
}

func lower(tokens []Token) {
	for i := range tokens {
		if t := &tokens[i]; t.Kind == TokenWord {
			t.Text = strings.ToLower(t.Text)
		}
	}
}

// Scan appends the tokens of text to out, words as they stand. Strings are those of standard_conforming_strings = on.
func Scan(out []Token, text string) ([]Token, error) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
		case strings.HasPrefix(text[i:], "--"):
			if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(text)
			}
		case strings.HasPrefix(text[i:], "/*"):
			n := comment(text[i:])
			if n < 0 {
				return out, errUnterminated
			}
			i += n
		case c == '\'':
			value, n := quoted(text[i:], '\'')
			if n < 0 {
				return out, errUnterminated
			}
			out = append(out, literal(value))
			i += n
		case c == '"':
			value, n := quoted(text[i:], '"')
			if n < 0 {
				return out, errUnterminated
			}
			out = append(out, Token{Kind: TokenName, Text: value})
			i += n
		case isDigit(c) || c == '.' && i+1 < len(text) && isDigit(text[i+1]):
			n := number(text[i:])
			out = append(out, Token{Kind: TokenNumber, Text: text[i : i+n]})
			i += n
		case c == '$':
			t, n := dollar(text[i:])
			if n < 0 {
				return out, errUnterminated
			}
			out = append(out, t)
			i += n
		case isLetter(c):
			n := 1
			for i+n < len(text) && (isLetter(text[i+n]) || isDigit(text[i+n]) || text[i+n] == '$') {
				n++
			}
			word := text[i : i+n]
			i += n
			prefix, rest := byte(0), text[i:] // prefix: of a string
			if len(word) == 1 {
				prefix = word[0] | 0x20
			}
			switch {
			case strings.HasPrefix(rest, "'") && (prefix == 'e' || prefix == 'b' || prefix == 'x' || prefix == 'n'):
				n := sealed(rest, prefix == 'e')
				if n < 0 {
					return out, errUnterminated
				}
				out = append(out, Token{Kind: TokenSealed})
				i += n
			case prefix == 'u' && (strings.HasPrefix(rest, "&'") || strings.HasPrefix(rest, `&"`)):
				_, n := quoted(rest[1:], rest[1])
				if n < 0 {
					return out, errUnterminated
				}
				out = append(out, Token{Kind: TokenSealed})
				i += 1 + n
			default:
				out = append(out, Token{Kind: TokenWord, Text: word})
			}
		case strings.IndexByte(operators, c) >= 0:
			n := operator(text[i:])
			out = append(out, Token{Kind: TokenSign, Text: text[i : i+n]})
			i += n
		case strings.HasPrefix(text[i:], "::") || strings.HasPrefix(text[i:], ":="):
			out = append(out, Token{Kind: TokenSign, Text: text[i : i+2]})
			i += 2
		case strings.IndexByte("(),;[].:", c) >= 0:
			out = append(out, Token{Kind: TokenSign, Text: text[i : i+1]})
			i++
		default:
			return out, errCharacter
		}
	}
	return out, nil
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// literal is a string; one with a backslash means something else where standard_conforming_strings is off.
func literal(value string) Token {
	if strings.IndexByte(value, '\\') >= 0 {
		return Token{Kind: TokenSealed}
	}
	return Token{Kind: TokenString, Text: value}
}

// quoted is what stands between quotes, two of which stand for one, and how long all of it is; -1: it does not end.
func quoted(text string, quote byte) (string, int) {
	for i := 1; i < len(text); i++ {
		if text[i] != quote {
			continue
		}
		if i+1 < len(text) && text[i+1] == quote {
			i++
			continue
		}
		value, q := text[1:i], string(quote)
		if strings.Contains(value, q) {
			value = strings.ReplaceAll(value, q+q, q)
		}
		return value, i + 1
	}
	return "", -1
}

// sealed is how long a string with a prefix is; escapes: a backslash takes the next character's meaning.
func sealed(text string, escapes bool) int {
	if !escapes {
		_, n := quoted(text, '\'')
		return n
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\', text[i] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case text[i] == '\'':
			return i + 1
		}
	}
	return -1
}

// comment is how long a comment is, with those in it; -1: it does not end.
func comment(text string) int {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// number is how long a number is, with whatever letters follow.
func number(text string) int {
	n := 0
	for n < len(text) && (isDigit(text[n]) || isLetter(text[n]) || text[n] == '.' ||
		(text[n] == '+' || text[n] == '-') && n > 0 && text[n-1]|0x20 == 'e' &&
			!strings.HasPrefix(strings.ToLower(text), "0x")) {
		n++
	}
	return n
}

// dollar is a parameter or a string in dollar quotes.
func dollar(text string) (Token, int) {
	n := 1
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	if n > 1 {
		return Token{Kind: TokenParam, Text: text[1:n]}, n
	}
	for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
		n++
	}
	if n == len(text) || text[n] != '$' {
		return Token{}, -1
	}
	tag := text[:n+1]
	end := strings.Index(text[len(tag):], tag)
	if end < 0 {
		return Token{}, -1
	}
	return Token{Kind: TokenSealed}, len(tag) + end + len(tag)
}

// operator is how long an operator is: as many characters as there are, without a comment's beginning, and without +
// or - at its end unless it has a special character.
func operator(text string) int {
	n := 1
	for n < len(text) && strings.IndexByte(operators, text[n]) >= 0 && !strings.HasPrefix(text[n:], "--") &&
		!strings.HasPrefix(text[n:], "/*") {
		n++
	}
	for n > 1 && (text[n-1] == '+' || text[n-1] == '-') && !strings.ContainsAny(text[:n], special) {
		n--
	}
	return n
}
