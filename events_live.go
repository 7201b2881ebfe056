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
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// eventsKeepAlive is how often a stream of events shows that it is alive, so that
// proxies on the way do not close it.
const eventsKeepAlive = 15 * time.Second

// eventStreams ends the streams of events when a new configuration is loaded: the
// admin endpoint is replaced then, and waits for its requests to end.
var eventStreams struct {
	sync.Mutex
	end chan struct{}
}

// endOfStreams returns a channel that is closed when streams are to end.
func endOfStreams() <-chan struct{} {
	eventStreams.Lock()
	defer eventStreams.Unlock()
	if eventStreams.end == nil {
		eventStreams.end = make(chan struct{})
	}
	return eventStreams.end
}

func endStreams() {
	eventStreams.Lock()
	defer eventStreams.Unlock()
	if eventStreams.end != nil {
		close(eventStreams.end)
		eventStreams.end = nil
	}
}

func acceptsEventStream(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for media := range strings.SplitSeq(line, ",") {
			media, _, _ = strings.Cut(media, ";")
			if strings.TrimSpace(media) == "text/event-stream" {
				return true
			}
		}
	}
	return false
}

// streamEvents sends events as they happen, after those that the client has
// missed since the one that it names as its last.
func streamEvents(w http.ResponseWriter, r *http.Request) error {
	last := recentEvents.last()
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return adminError(http.StatusBadRequest, "Last-Event-ID: %q is no id of an event", id)
		}
		last = n
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	ended := endOfStreams()
	keepAlive := time.NewTicker(eventsKeepAlive)
	defer keepAlive.Stop()
	text := "retry: 1000\n\n"
	for {
		missed, changed := recentEvents.after(last)
		for _, e := range missed {
			data, err := json.Marshal(e)
			if err != nil {
				return err
			}
			text += fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data)
			last = e.ID
		}
		if _, err := io.WriteString(w, text); err != nil {
			return nil // the client has left
		}
		if err := out.Flush(); err != nil {
			return nil
		}
		text = ""
		select {
		case <-changed:
		case <-keepAlive.C:
			text = ": alive\n\n"
		case <-ended:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}
