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
	"net/http"
	"net/url"
	"strings"

	"github.com/llm-gateway/caddy-llm-gateway/credential"
	"github.com/llm-gateway/caddy-llm-gateway/provider"
	"github.com/llm-gateway/caddy-llm-gateway/verdict"
)

// authMethod is how a channel's key is sent. At most one of its fields is set:
// with none, no key is.
type authMethod struct {
	header      string // in canonical form
	bearer      bool   // the header's value begins with Bearer
	query       string // the name of a parameter
	passthrough bool   // the client's own credential goes through
}

// authOf returns how the keys of c are sent to that provider.
func authOf(c *Channel, preset provider.Preset) authMethod {
	auth := c.Auth
	if auth == nil {
		auth = &Auth{Scheme: authHeader, Name: preset.Header}
		if preset.Scheme == provider.Bearer {
			auth.Scheme = authBearer
		}
	}
	switch {
	case auth.Scheme == authPassthrough:
		return authMethod{passthrough: true}
	case len(c.Keys) == 0:
		return authMethod{}
	case auth.Scheme == authBearer:
		return authMethod{header: "Authorization", bearer: true}
	case auth.Scheme == authHeader:
		return authMethod{header: http.CanonicalHeaderKey(auth.Name)}
	case auth.Scheme == authQuery:
		return authMethod{query: auth.Name}
	}
	return authMethod{}
}

// authValue holds what carries a key: the values of a header, or one parameter of
// a query. It does not show them.
type authValue []string

// String implements fmt.Stringer.
func (authValue) String() string { return "(credential)" }

// GoString implements fmt.GoStringer.
func (authValue) GoString() string { return "(credential)" }

// value returns what carries the key; nil if nothing does. It goes on an
// attempt's own request only, never on the one that the embedded proxy holds and
// logs.
func (m authMethod) value(key credential.Secret) authValue {
	switch {
	case key.Empty():
		return nil
	case m.bearer:
		return authValue{"Bearer " + key.Reveal()}
	case m.header != "":
		return authValue{key.Reveal()}
	case m.query != "":
		return authValue{m.query + "=" + url.QueryEscape(key.Reveal())}
	}
	return nil
}

// authenticate puts the credential on a try's own request.
func (t *try) authenticate(out *http.Request) {
	ch := t.a.ch
	value := ch.credentials[t.key]
	switch {
	case ch.auth.passthrough:
		passCredentials(t.a.x.orig, out)
	case value == nil:
	case ch.auth.query != "":
		out.URL.RawQuery = mergeQuery(value[0], out.URL.RawQuery)
	default:
		out.Header[ch.auth.header] = value // shared, never written to
	}
}

// passCredentials copies what the client may have its credential in.
func passCredentials(in, out *http.Request) {
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if values := in.Header[name]; len(values) > 0 {
			out.Header[name] = values
		}
	}
	for param := range strings.SplitSeq(in.URL.RawQuery, "&") {
		if paramName(param) == "key" {
			out.URL.RawQuery = mergeQuery(out.URL.RawQuery, param)
		}
	}
	const protocol = websocketPrefix + "Protocol"
	if isWebsocket(in) && len(in.Header[protocol]) > 0 {
		out.Header["Sec-WebSocket-Protocol"] = in.Header[protocol] // in the case that the embedded proxy gives it
	}
}

// ofClientsCredential changes a verdict on the client's own credential: what
// becomes of that is between the client and the provider. A refusal goes to the
// client as it came, and a limit is the client's alone.
func ofClientsCredential(r verdict.Result) verdict.Result {
	switch {
	case r.Verdict == verdict.Credential || r.Forbidden:
		r.Elsewhere = false
	case r.Verdict != verdict.Limited:
		return r
	}
	r.Verdict, r.Forbidden, r.Recognised = verdict.Neutral, false, true
	return r
}
