package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// remote asks a listener of a running server. Call find first.
type remote struct {
	listener                  // the zero value is the admin listener
	server, tokenFile, caFile string
	certFile, keyFile         string
	also                      int           // a status beside 200 that is an answer, too
	most                      int64         // bytes of an answer; 0 means maxAnswer
	timeout                   time.Duration // 0 means remoteTimeout
	progress                  func(int64)   // is told how far the server is, if it takes long; nil means nobody

	at    *url.URL
	token string
	roots *x509.CertPool   // nil means those of this machine
	cert  *tls.Certificate // of the operator; nil means none
}

// listener is one of the listeners of a server, and how operators name it.
type listener struct {
	name    string // "" means admin
	env     string // what the names of environment variables for address and token begin with
	example string // address that is asked if the operator names none
}

// checkListener is off in a server unless its listen.check says otherwise.
var checkListener = listener{"check", "TIDEGATE_CHECK_", "http://127.0.0.1:8081"}

func (l listener) orAdmin() listener {
	if l.name == "" {
		return listener{"admin", "TIDEGATE_", defaultServer}
	}
	return l
}

const (
	defaultServer = "http://127.0.0.1:9090"
	remoteTimeout = 10 * time.Second
	maxAnswer     = 16 << 20
)

func (r *remote) flags(flags *flag.FlagSet) {
	l := r.orAdmin()
	flags.StringVar(&r.server, "server", "", "`URL` of the "+l.name+" listener ("+l.env+"SERVER, or "+l.example+")")
	r.credentialFlags(flags)
}

// credentialFlags adds the flags by which a server knows who asks.
func (r *remote) credentialFlags(flags *flag.FlagSet) {
	l := r.orAdmin()
	flags.StringVar(&r.tokenFile, "token-file", "", "`FILE` with its token ("+l.env+"TOKEN_FILE, or the token itself in "+l.env+"TOKEN)")
	flags.StringVar(&r.caFile, "ca-file", "", "`FILE` with the certificate authorities (PEM) of an https server, instead of those of this machine (TIDEGATE_CA_FILE)")
	flags.StringVar(&r.certFile, "cert-file", "", "`FILE` with your certificate (PEM), for an https server that knows operators by theirs (TIDEGATE_CERT_FILE)")
	flags.StringVar(&r.keyFile, "key-file", "", "`FILE` with its private key (TIDEGATE_KEY_FILE)")
}

// find takes what the flags do not say from the environment, and reads the token and the certificates.
func (r *remote) find(env Env) error {
	l := r.orAdmin()
	server := cmp.Or(r.server, env.Getenv(l.env+"SERVER"), l.example)
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	at, err := url.Parse(server)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.RawQuery != "" || at.User != nil {
		return fmt.Errorf("the server %q is not a valid address: write, for example, %s", server, l.example)
	}
	r.at = at
	file, token := r.tokenFile, env.Getenv(l.env+"TOKEN")
	if file == "" && token == "" {
		file = env.Getenv(l.env + "TOKEN_FILE")
	}
	if file != "" {
		text, err := bounded.ReadFile(file, maxToken)
		if err != nil {
			return fmt.Errorf("the token: %w", err)
		}
		token = string(text)
	}
	r.token = strings.TrimSpace(token)
	if file != "" && r.token == "" {
		return fmt.Errorf("the token: %s is empty", file)
	}
	if err := r.findCertificate(env); err != nil {
		return err
	}
	return r.findRoots(env)
}

// maxToken is how long the file of a token may be.
const maxToken = 64 << 10

func (r *remote) findCertificate(env Env) error {
	cert, key := cmp.Or(r.certFile, env.Getenv("TIDEGATE_CERT_FILE")), cmp.Or(r.keyFile, env.Getenv("TIDEGATE_KEY_FILE"))
	if cert == "" && key == "" {
		return nil
	}
	if cert == "" || key == "" {
		return errors.New("the certificate: --cert-file and --key-file go together")
	}
	pair, err := bounded.KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("the certificate: %w", err)
	}
	r.cert = &pair
	return nil
}

func (r *remote) findRoots(env Env) error {
	file := cmp.Or(r.caFile, env.Getenv("TIDEGATE_CA_FILE"))
	if file == "" {
		return nil
	}
	text, err := bounded.ReadFile(file, bounded.PEM)
	if err != nil {
		return fmt.Errorf("the certificates: %w", err)
	}
	r.roots = x509.NewCertPool()
	if !r.roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("the certificates: %s has none in PEM", file)
	}
	return nil
}

func (r *remote) get(ctx context.Context, path string, query url.Values, answer any) error {
	at := r.at.JoinPath(path)
	at.RawQuery = query.Encode()
	return r.do(ctx, http.MethodGet, at, nil, answer)
}

func (r *remote) post(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return r.do(ctx, http.MethodPost, r.at.JoinPath(path), body, answer)
}

func (r *remote) do(ctx context.Context, method string, at *url.URL, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, remoteTimeout))
	defer cancel()
	if r.progress != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: r.informed})
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.progress != nil {
		request.Header.Set(admin.ProgressHeader, "1")
	}
	// The token is for this server and for nobody that it points to.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.roots != nil || r.cert != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: r.roots}
		if r.cert != nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{*r.cert}
		}
		defer transport.CloseIdleConnections()
		client.Transport = transport
	}
	response, err := client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("cannot ask %s: %w; is tidegate serve running, and is this its %s listener?", r.at, err, r.orAdmin().name)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, cmp.Or(r.most, maxAnswer)))
	if err != nil {
		return fmt.Errorf("the answer of %s: %w", r.at, err)
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != r.also {
		return r.refused(response, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s does not answer as the %s listener does: %w", r.at, r.orAdmin().name, err)
	}
	return nil
}

// informed passes on the progress that the server reports before it answers.
func (r *remote) informed(_ int, header textproto.MIMEHeader) error {
	if n, err := strconv.ParseInt(header.Get(admin.ProgressHeader), 10, 64); err == nil {
		r.progress(n)
	}
	return nil
}

func (r *remote) refused(response *http.Response, text []byte) error {
	var why admin.Problem
	if json.Unmarshal(text, &why) == nil && why.Detail != "" {
		return errors.New(why.Detail)
	}
	return fmt.Errorf("%s answers %s: is this the %s listener?", r.at, response.Status, r.orAdmin().name)
}
