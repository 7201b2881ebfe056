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
	"sync"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
	"github.com/llm-gateway/caddy-llm-gateway/breaker"
)

// event is a transition: of a breaker, or of what is enabled. The names are also
// those of the Caddy events that are emitted for it.
type event struct {
	ID      uint64    `json:"id"`
	At      time.Time `json:"at"`
	Gateway string    `json:"gateway"`
	Channel string    `json:"channel"`
	Model   string    `json:"model"`
	Key     string    `json:"key"`
	Kind    string    `json:"kind"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
}

const (
	breakerOpened   = "llm_breaker_opened"
	breakerHalfOpen = "llm_breaker_half_open"
	breakerClosed   = "llm_breaker_closed"
	channelDisabled = "llm_channel_disabled"
	channelEnabled  = "llm_channel_enabled"
	keyDisabled     = "llm_key_disabled"
	keyEnabled      = "llm_key_enabled"
)

// keptEvents is how many events are kept, over reloads too.
const keptEvents = 1000

// eventLog keeps the newest events. It is safe for concurrent use.
type eventLog struct {
	mu   sync.Mutex
	next uint64 // id of the next event
	ring [keptEvents]event
	// changed is closed when an event is added; nil if nobody waits.
	changed chan struct{}
}

var recentEvents = eventLog{next: 1}

// add keeps e under a new id, which it returns.
func (l *eventLog) add(e event) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.ring[e.ID%keptEvents] = e
	l.next++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return e.ID
}

// after returns the events with ids above id, oldest first, and a channel that is
// closed when there are more. An id that was never given is one of an earlier
// process: then all events are new.
func (l *eventLog) after(id uint64) ([]event, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id >= l.next {
		id = 0
	}
	var list []event
	for id = max(id+1, l.next-min(l.next, keptEvents)); id < l.next; id++ {
		list = append(list, l.ring[id%keptEvents])
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return list, l.changed
}

// last returns the id of the newest event, 0 if there is none.
func (l *eventLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// list returns the events that are kept, newest first.
func (l *eventLog) list() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []event{}
	for id := l.next - 1; id > 0 && len(list) < keptEvents; id-- {
		list = append(list, l.ring[id%keptEvents])
	}
	return list
}

func (gw *gateway) breakerEvent(ch *channel, c breaker.Change) {
	kind := map[breaker.State]string{breaker.Open: breakerOpened, breaker.HalfOpen: breakerHalfOpen, breaker.Closed: breakerClosed}[c.To]
	by := autodisable.ByAuto
	if c.Reason == autodisable.ByOperator {
		by = autodisable.ByOperator
	}
	gw.emit(event{Channel: ch.name, Model: c.Model, Kind: kind, From: c.From.String(), To: c.To.String(), Reason: c.Reason, By: by})
}

func (gw *gateway) disableEvent(ch *channel, c autodisable.Change) {
	e := event{Channel: ch.name, Key: c.Key, From: "disabled", To: "enabled", Reason: c.Reason, By: c.By}
	if c.Disabled {
		e.From, e.To = e.To, e.From
	}
	e.Kind = map[[2]bool]string{
		{true, true}: keyDisabled, {true, false}: keyEnabled, {false, true}: channelDisabled, {false, false}: channelEnabled,
	}[[2]bool{c.Key != "", c.Disabled}]
	gw.emit(e)
}

// emit keeps the event and hands it to Caddy's event handlers, which run before
// it returns: it must not be called under a lock.
func (gw *gateway) emit(e event) {
	e.At, e.Gateway = time.Now(), gw.name
	e.ID = recentEvents.add(e)
	if gw.events == nil || gw.ctx.Err() != nil {
		return
	}
	gw.events.Emit(gw.ctx, e.Kind, map[string]any{
		"id": e.ID, "gateway": e.Gateway, "channel": e.Channel, "model": e.Model, "key": e.Key,
		"from": e.From, "to": e.To, "reason": e.Reason, "by": e.By,
	})
}

func serveEvents(w http.ResponseWriter, r *http.Request) error {
	if err := allow(w, r, http.MethodGet, http.MethodHead); err != nil {
		return err
	}
	if acceptsEventStream(r) && r.Method == http.MethodGet {
		return streamEvents(w, r)
	}
	return writeJSON(w, recentEvents.list())
}
