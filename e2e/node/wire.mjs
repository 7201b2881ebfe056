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

// What the providers answer, as written in ../wire, as scripts of an upstream.

import { readFileSync } from 'node:fs';

// readWire returns what the upstream of the given name answers in an API.
export function readWire(api, name) {
  const text = readFileSync(new URL(`../wire/${api}.json`, import.meta.url), 'utf8');
  const number = name.charCodeAt(0);
  return JSON.parse(text.replaceAll('"NUMBER"', number).replaceAll('NAME', name));
}

// answer is the script of an upstream that answers the call.
export function answer(wire, call) {
  if (call.stream) {
    const { head, tail } = wire.streams[call.stream];
    return (_, res) => {
      openStream(res);
      for (const event of [...head, ...tail]) res.write(frame(wire, event));
      res.end();
    };
  }
  return (_, res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify(wire.answers[call.answer]));
  };
}

// openStream sends the head of the answer without waiting for the first event.
export function openStream(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.flushHeaders();
}

// frame is one event as the API sends it, with the event's name where it has a
// type.
export function frame(wire, event) {
  const name = event.type && !event.object ? `event: ${event.type}\n` : '';
  return `${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}${wire.separator ?? '\n\n'}`;
}
