package formvalue

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"
)

// lines joins text as HTTP does.
func lines(all ...string) string { return strings.Join(all, "\r\n") }

func TestMultipart(t *testing.T) {
	f := func(name, body, want string) {
		t.Helper()
		form, _ := ParseMultipart([]byte(body), "B")
		if got, ok := form.Sole("email"); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
	const email, other = `Content-Disposition: form-data; name="email"`, `Content-Disposition: form-data; name="x"`
	whole := func(head, value string) string {
		return lines("--B", other, "", "1", "--B", head, "", value, "--B--", "")
	}
	f("plain", whole(email, "ann"), "ann")
	f("no line at the end", strings.TrimSuffix(whole(email, "ann"), "\r\n"), "ann")
	f("lower case", whole(strings.ToLower(email), "ann"), "ann")
	f("no quotes", whole(`Content-Disposition: form-data; name=email`, "ann"), "ann")
	f("with a type", whole(lines(email, "Content-Type: text/plain; charset=UTF-8"), "ann"), "ann")
	f("with a length", whole(lines(email, "Content-Length: 3"), "ann"), "ann")
	f("several lines", whole(email, "a\r\nb"), "a\r\nb")
	f("another file", lines("--B", other+`; filename="a.png"`, "", "1", "--B", email, "", "ann", "--B--"), "ann")

	f("twice", lines("--B", email, "", "ann", "--B", email, "", "ann", "--B--"), "")
	f("another case", lines("--B", email, "", "ann", "--B", `Content-Disposition: form-data; name="Email"`, "", "bob", "--B--"), "")
	f("a file of that name", whole(email+`; filename="a"`, "ann"), "")
	f("beside a file of that name", lines("--B", email, "", "ann", "--B", email+`; filename="a"`, "", "bob", "--B--"), "")
	f("another charset", whole(lines(email, "Content-Type: text/plain; charset=utf-7"), "ann"), "")
	f("encoded", whole(lines(email, "Content-Transfer-Encoding: base64"), "YW5u"), "")
	f("not UTF-8", whole(email, "ann\xff"), "")
	f("two names", whole(email+`; name="x"`, "ann"), "")
	f("an extended name", whole(email+`; name*=utf-8''x`, "ann"), "")
	f("an escaped name", whole(`Content-Disposition: form-data; name="emai\l"`, "ann"), "")
	f("an encoded name elsewhere", lines("--B", email, "", "ann", "--B", `Content-Disposition: form-data; name="%65mail"`, "", "bob", "--B--"), "")
	f("two dispositions", whole(lines(email, other), "ann"), "")
	f("a folded header", whole(lines("Content-Disposition: form-data;", ` name="email"`), "ann"), "")
	f("no disposition", whole("X-A: b", "ann"), "")
	f("no header", lines("--B", "", "ann", "--B--"), "")
	f("an attachment", whole(`Content-Disposition: attachment; name="email"`, "ann"), "")
	f("text before", "x\r\n"+whole(email, "ann"), "")
	f("text behind", whole(email, "ann")+"--B\r\n", "")
	f("bare line feeds", strings.ReplaceAll(whole(email, "ann"), "\r\n", "\n"), "")
	f("a part between bare line feeds", whole(email, "ann\n--B\n"+email+"\n\nbob"), "")
	f("space behind the boundary", strings.Replace(whole(email, "ann"), "--B\r\n", "--B \r\n", 1), "")
	f("no end", lines("--B", email, "", "ann", "--B"), "")
	f("cut", lines("--B", email, "", "ann"), "")
	f("empty", "", "")
	f("not a form", `{"email":"ann"}`, "")

	for _, boundary := range []string{"", "a b", strings.Repeat("B", 71), "B\r\n", "B\"", "B;"} {
		if _, ok := ParseMultipart([]byte(strings.ReplaceAll(whole(email, "ann"), "--B", "--"+boundary)), boundary); ok {
			t.Errorf("boundary %q was accepted", boundary)
		}
	}
}

// FuzzMultipart: what is found is what mime/multipart finds, where it finds one value.
func FuzzMultipart(f *testing.F) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("B")
	_ = w.WriteField("email", "ann")
	_, _ = w.CreateFormFile("photo", "a.png")
	_ = w.Close()
	f.Add(b.Bytes(), "B")
	f.Add([]byte(lines("--B", `content-disposition: form-data; name=email`, "", "a", "--B--")), "B")
	f.Add([]byte(lines("--B", `Content-Disposition: form-data; name="email"; filename=x`, "Content-Type: a/b", "", "a", "--B--", "")), "B")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		form, _ := ParseMultipart(body, boundary)
		got, ok := form.Sole("email")
		if !ok {
			return
		}
		var values []string
		for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
			part, err := r.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("email of %q is %q, mime/multipart says %v", body, got, err)
			}
			if text, err := io.ReadAll(part); err == nil && part.FormName() == "email" {
				values = append(values, string(text))
			}
		}
		if len(values) != 1 || values[0] != got {
			t.Errorf("email of %q: %q, mime/multipart says %q", body, got, values)
		}
	})
}
