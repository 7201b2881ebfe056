// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package llmgateway

import (
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/dialect"
	"github.com/llm-gateway/caddy-llm-gateway/provider"
	"github.com/llm-gateway/caddy-llm-gateway/request"
)

// staysBehind reports whether a request header (in canonical form) is between
// the client and us: its credentials, its own account at a provider, where it
// comes from, and what concerns this connection only.
func staysBehind(name string) bool {
	switch name {
	case "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie",
		"Openai-Organization", "Openai-Project", "X-Goog-User-Project",
		"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
		"Forwarded", "X-Real-Ip", "Via", "Origin", "Referer", "Early-Data", "Expect", "Content-Length":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// ofConnection reports whether a request header belongs to the client's
// connection (RFC 9110, section 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(name, websocketPrefix)
}

const websocketPrefix = "Sec-Websocket-"

// keySubprotocol is how browsers send a key with a websocket handshake, since
// they cannot set headers there.
const keySubprotocol = "openai-insecure-api-key."

// passedOn returns the headers of a client's request that may go upstream.
func passedOn(in http.Header) http.Header {
	out := make(http.Header, len(in))
	for name, values := range in {
		if !staysBehind(name) && !ofConnection(name) {
			out[name] = values
		}
	}
	for _, line := range in["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = []string{""} // else net/http sends its own
	}
	return out
}

// isWebsocket reports whether the client asks for a websocket: by HTTP/1.1's
// Upgrade, or by the extended CONNECT of HTTP/2 and 3. Nothing else is upgraded:
// the gateway could not tell what passes through such a tunnel.
func isWebsocket(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet:
		return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	case http.MethodConnect:
		return r.Proto == "websocket" || r.Header.Get(":protocol") == "websocket"
	}
	return false
}

// noForwarded tells the embedded proxy to leave these headers out: no attempt
// would send them. It is shared and never written to, as the proxy works on a
// copy.
var noForwarded = http.Header{"X-Forwarded-For": nil, "X-Forwarded-Host": nil, "X-Forwarded-Proto": nil}

// shown returns the headers for the embedded proxy, which works on a copy and
// logs that. Every attempt makes its own from what is passed on; but what an
// upgrade needs, the proxy works out.
func (x *exchange) shown() http.Header {
	if !isWebsocket(x.orig) {
		return noForwarded
	}
	out := passedOn(x.orig.Header)
	for name, values := range x.orig.Header {
		if name == "Connection" || name == "Upgrade" || name == ":protocol" || strings.HasPrefix(name, websocketPrefix) {
			out[name] = values
		}
	}
	const protocol = websocketPrefix + "Protocol"
	if offered := withoutKeyItem(out[protocol]); len(offered) > 0 {
		out[protocol] = offered
	} else {
		delete(out, protocol)
	}
	return out
}

func withoutKeyItem(offered []string) []string {
	var kept []string
	for _, line := range offered {
		items := strings.Split(line, ",")
		items = slices.DeleteFunc(items, func(item string) bool {
			return strings.HasPrefix(strings.TrimSpace(item), keySubprotocol)
		})
		if line = strings.TrimSpace(strings.Join(items, ",")); line != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// request builds the try's own request. The credential goes on last, on
// this request only: the one that the embedded proxy holds is logged.
func (t *try) request() *http.Request {
	a := t.a
	q, ch := a.x.req, a.ch
	out := a.proxied.WithContext(httptrace.WithClientTrace(t.ctx, &t.trace))
	t.url = ch.url(q, a.model)
	out.URL = &t.url
	out.RequestURI = ""
	out.Host = ch.base.Host
	out.Header = a.header()
	// With GetBody net/http may repeat the request on a new connection if nothing
	// of it was written on an idle one that turns out to be closed.
	out.Body, out.ContentLength, out.GetBody = q.Body(a.model)
	if _, ok := out.Header["Idempotency-Key"]; !ok && a.x.repeatable() {
		out.Header["Idempotency-Key"] = nil // and if it was. No values: it is not sent
	}
	if ch.headerUp != nil {
		ch.headerUp.ApplyToRequest(out)
	}
	t.authenticate(out)
	return out
}

// defaultAnthropicVersion is sent where the client names none, since Anthropic
// requires one. Clients send their own.
const defaultAnthropicVersion = "2023-06-01"

func (a *attempt) header() http.Header {
	var out http.Header
	if isWebsocket(a.x.orig) {
		out = a.proxied.Header.Clone()
		maps.DeleteFunc(out, func(name string, _ []string) bool { return staysBehind(name) })
	} else {
		out = passedOn(a.x.orig.Header)
	}
	if a.ch.headerUp != nil {
		out = out.Clone() // header_up may change values in place
	}
	// The bytes of an answer are looked at. net/http asks for gzip on its own
	// and unpacks it; a stream would be held up by that.
	delete(out, "Accept-Encoding")
	if a.x.req.Stream {
		out["Accept-Encoding"] = []string{"identity"}
	}
	if a.x.req.Decoded() {
		delete(out, "Content-Encoding")
	}
	if a.x.dialect == dialect.Anthropic && len(out["Anthropic-Version"]) == 0 {
		out["Anthropic-Version"] = []string{defaultAnthropicVersion}
	}
	return out
}

// url returns where q goes on this channel. Escapes stay as the client sent
// them.
func (ch *channel) url(q *request.Request, model string) url.URL {
	path := provider.JoinPath(ch.basePath, q.Path(model), q.Dialect)
	u := url.URL{Scheme: ch.base.Scheme, Host: ch.base.Host, Path: path}
	if plain, err := url.PathUnescape(path); err == nil && plain != path {
		u.Path, u.RawPath = plain, path
	}
	u.RawQuery = mergeQuery(ch.base.RawQuery, q.Query(model))
	return u
}

// mergeQuery joins the base URL's query and the client's. Where both name a
// parameter, the operator's value stands.
func mergeQuery(base, client string) string {
	if base == "" || client == "" {
		return base + client
	}
	merged := []string{base}
	for param := range strings.SplitSeq(client, "&") {
		if !hasParam(base, paramName(param)) {
			merged = append(merged, param)
		}
	}
	return strings.Join(merged, "&")
}

func hasParam(query, name string) bool {
	for param := range strings.SplitSeq(query, "&") {
		if paramName(param) == name {
			return true
		}
	}
	return false
}

// paramName returns the decoded name of a parameter.
func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		return plain
	}
	return name
}

// cleanResponse removes what an upstream says about its own edge, and adds what
// the selection policy wants the client to keep.
func cleanResponse(res *http.Response, policy http.Header) {
	cleanHeader(res.Header)
	cleanHeader(res.Trailer)
	for name, values := range policy {
		res.Header[name] = append(res.Header[name], values...)
	}
}

func cleanHeader(h http.Header) {
	delete(h, "Set-Cookie")
	delete(h, "Alt-Svc")
	delete(h, "Strict-Transport-Security")
}
