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

// Prints the table of a run: what each client saw, by call and fault. Its
// argument is the file to which the suites added one line of JSON for each test,
// {"client","call","fault","saw"}. "a" and "b" are the whole answers of the
// preferred channel and of the one behind it, all else is the error that was
// raised.

import { readFileSync } from 'node:fs';

const columns = [
  'no fault',
  'refuses',
  '500',
  '429',
  '401',
  'overload',
  'error event first',
  'cut before content',
  'cut: reset',
  'cut: clean end',
  'refusal',
  'not readable',
  'unknown model',
  'too large',
  'all out',
];

const cells = readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean).map(JSON.parse);
const unknown = cells.find(({ fault }) => !columns.includes(fault));
if (unknown) throw new Error(`the table has no column for ${JSON.stringify(unknown)}`);

const rows = new Map();
for (const { client, call, fault, saw } of cells) {
  const name = `${client} ${call}`;
  if (!rows.has(name)) rows.set(name, { name });
  rows.get(name)[fault] = saw;
}

// The errors are as long as their names: the table has letters for them.
const errors = [...new Set(cells.map(({ saw }) => saw))].filter((saw) => saw.length > 1 && saw !== 'FAILED').sort();
const letter = (saw = '') => (errors.includes(saw) ? `E${errors.indexOf(saw) + 1}` : saw);

const table = [['', ...columns], ...[...rows.values()].map((row) => [row.name, ...columns.map((c) => letter(row[c]))])];
const widths = table[0].map((_, i) => Math.max(...table.map((row) => row[i].length)));
for (const row of table) console.log(row.map((text, i) => text.padEnd(widths[i])).join('  ').trimEnd());
for (const [i, error] of errors.entries()) console.log(`E${i + 1} = ${error}`);

const bad = cells.filter(({ saw }) => saw === 'FAILED').length;
console.log(`${cells.length - bad} passed, ${bad} failed`);
