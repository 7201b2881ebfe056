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

package autodisable_test

import (
	"fmt"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/autodisable"
)

func Example() {
	rule := autodisable.Rule{Status: 401, Times: 2, For: time.Hour}
	set := autodisable.NewSet(autodisable.Settings{Rules: []autodisable.Rule{rule}}, []string{"key-a", "key-b"})

	tell := func(c autodisable.Change) {
		if !c.Zero() {
			fmt.Printf("%s disabled: %v (%s)\n", c.Key, c.Disabled, c.Reason)
		}
	}
	request := func(key string, now time.Time, status int) {
		for _, c := range set.Lapse(now) {
			tell(c)
		}
		if set.ChannelDisabled(now) || set.KeyDisabled(key, now) {
			fmt.Println(key, "is not asked")
			return
		}
		began, ended := now, now.Add(time.Second)
		if status == 200 {
			set.Success(key, began, ended)
			return
		}
		tell(set.Failure(autodisable.Failure{Key: key, Status: status, Began: began}, ended, nil))
	}

	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) // time.Now() in real life
	request("key-a", now, 401)
	request("key-a", now.Add(time.Minute), 401)
	request("key-a", now.Add(2*time.Minute), 200)
	request("key-a", now.Add(2*time.Hour), 401) // on trial
	request("key-a", now.Add(3*time.Hour), 200) // out for two hours
	tell(set.Enable("key-a", now.Add(3*time.Hour), "a new invoice was paid"))
	request("key-a", now.Add(3*time.Hour), 200)

	// Output:
	// key-a disabled: true (Auto-disabled after 2 consecutive errors with status 401)
	// key-a is not asked
	// key-a disabled: false (time is up)
	// key-a disabled: true (Auto-disabled after 3 consecutive errors with status 401)
	// key-a is not asked
	// key-a disabled: false (a new invoice was paid)
}
