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
// preferred channel and of the one behind it; all else is the error that was
// raised: its status in the first table, its name in the second one.

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
  'error event late',
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

// print prints lines of texts as a table.
function print(lines) {
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  for (const line of lines) console.log(line.map((text, i) => text.padEnd(widths[i])).join('  ').trimEnd());
  console.log();
}

// pivot collects what was seen in a table of its own: rows by one of its names,
// columns by another one.
function pivot(seen, row, columns, column) {
  const lines = new Map();
  for (const cell of seen) {
    const line = lines.get(row(cell)) ?? lines.set(row(cell), columns.map(() => new Set())).get(row(cell));
    line[columns.indexOf(column(cell))].add(cell.saw);
  }
  const texts = [...lines].map(([name, line]) => [name, ...line.map((saw) => [...saw].sort().join(', '))]);
  return [['', ...columns], ...texts];
}

const failed = 'FAILED';
const answers = ['a', 'b', failed];
const isError = ({ saw }) => !answers.includes(saw);
const order = (x, y) => (x.client + x.call < y.client + y.call ? -1 : 1);
// An error is told by its status, those of broken streams have none.
const brief = (cell) => (isError(cell) ? { ...cell, saw: cell.saw.match(/^\d+/)?.[0] ?? 'raised' } : cell);
cells.sort(order);

print(pivot(cells.map(brief), ({ client, call }) => `${client} ${call}`, columns, ({ fault }) => fault));

const errors = columns.flatMap((column) => cells.filter((cell) => isError(cell) && cell.fault === column));
const clients = [...new Set(cells.map(({ client }) => client))];
if (errors.length > 0) print(pivot(errors, ({ fault }) => fault, clients, ({ client }) => client));

const bad = cells.filter(({ saw }) => saw === failed).length;
console.log(`${cells.length} cells, ${bad} failed`);
