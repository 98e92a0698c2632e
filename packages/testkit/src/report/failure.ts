import { type RuntimeEvent, TallystickError } from '@tallystick/core'
import { formatLegibly, unseen } from '@tallystick/core/internal'
import { lawWords, linkLaw, type Subject } from './laws.ts'

/** What was found, and where. */
export interface Finding {
  /** The law that is broken by its number; or the promise that is broken, as a sentence without its full stop. */
  readonly law: number | string
  /** Whose promise it is. */
  readonly subject: Subject
  readonly what: string
  /** The lines of a record, such as a ledger, and which of them is at fault, from 0. */
  readonly page?: Page | undefined
}

/** A record as lines for people. */
export interface Page {
  readonly title: string
  readonly lines: readonly string[]
  /** The line at fault, from 0. */
  readonly marked?: number | undefined
}

/** How the example of a failure is found again, and what it is. */
export interface Found {
  readonly again?: string | undefined
  readonly example?: readonly string[] | undefined
  readonly cause?: unknown
}

/** The most lines of a record that are printed; of a longer one the first and the last. */
const MAX_LINES = 24
const FIRST_LINES = 3

/** Makes the error of a broken law or promise: its words, its page, the example, and the record up to the line at fault. */
export function createFailure(finding: Finding, { again, example, cause }: Found = {}): TallystickError {
  const { law, subject, what, page } = finding
  const claim = typeof law === 'number' ? `Law ${law}: ${lawWords[law] ?? 'unknown'}` : law
  const lines = [
    `Not so: ${claim}.`,
    `  found:   ${what.replace(/^(?:Not so: |The ledger breaks its contract: )/, '')}`,
    `  read:    ${linkLaw(typeof law === 'number' ? law : subject)}`,
    ...(again === undefined ? [] : [`  again:   ${again}`]),
    ...(example === undefined ? [] : ['', 'The example:', ...example.map((line) => `  ${line}`)]),
    ...(page === undefined ? [] : ['', `${page.title}:`, ...formatPage(page)]),
  ]
  return new TallystickError(
    'contract',
    lines.map(makeVisible).join('\n'),
    cause === undefined ? {} : { cause },
  )
}

function formatPage({ lines, marked = lines.length - 1 }: Page): readonly string[] {
  const shown = lines.slice(0, marked + 1)
  const left = shown.length - MAX_LINES
  const numbered = shown.map((line, index) => `${index === marked ? '>' : ' '} ${line}`)
  return left <= 0
    ? numbered
    : [
        ...numbered.slice(0, FIRST_LINES),
        `  … ${left} lines are left out`,
        ...numbered.slice(FIRST_LINES + left),
      ]
}

/** What every event has beside its body, and what says little to a person. */
const left = new Set([
  ...[
    'runId',
    'seq',
    'turn',
    'at',
    'type',
    'v',
    'epoch',
    'id',
    'toolCallId',
    'cause',
    'name',
    'role',
    'effect',
  ],
  ...['definition', 'recording', 'limits', 'grant', 'retry', 'model', 'requestDigest', 'inputDigest', 'part'],
  ...[
    'providerCallId',
    'providerMessageId',
    'servedModel',
    'idempotencyKey',
    'toolChoice',
    'finalizing',
    'prices',
  ],
])

/** Streams whose whole is in another event. */
const pieces = new Set([
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
  'assistant_started',
  'usage_updated',
])

/** The most characters of an event's body. */
const MAX_BODY = 100

/** A ledger as a page, up to an event, which is marked and followed by what is wrong with it. */
export function toLedgerPage(
  events: readonly RuntimeEvent[],
  at: RuntimeEvent | undefined,
  what: string,
  { hidesPieces = true }: { readonly hidesPieces?: boolean } = {},
): Page {
  const shown = events.filter((event) => event === at || !hidesPieces || !pieces.has(event.type))
  const place = at === undefined ? -1 : shown.indexOf(at)
  const marked = place < 0 ? shown.length - 1 : place
  const names = new Map<string | undefined, string>(
    events.flatMap((event) => (event.type === 'tool_request_ready' ? [[event.toolCallId, event.name]] : [])),
  )
  const lines = shown.map((event, index) => {
    const mark = index === marked && what !== '' ? `\n      ^ ${what}` : ''
    return `${formatEvent(event, names.get(event.toolCallId))}${mark}`
  })
  const [first] = events
  return {
    title: `The ledger of run ${first?.runId ?? '(empty)'}, up to event ${shown[marked]?.seq ?? 0}`,
    lines,
    marked,
  }
}

/** An event in one line. */
export function formatEvent(event: RuntimeEvent, tool?: string): string {
  const words = [
    String(event.seq).padStart(3),
    event.type,
    ...(tool === undefined ? [] : [tool]),
    formatBody(event),
  ]
  return words.join(' ').trimEnd()
}

function formatBody(event: RuntimeEvent): string {
  const fields = Object.entries(event).flatMap(([name, value]) => {
    const isUsual = (name === 'attempt' && value === 1) || value === false || Object(value).length === 0
    return left.has(name) || isUsual ? [] : [`${name} ${formatLegibly(simplify(value), MAX_BODY)}`]
  })
  const text = fields.join(', ')
  return text.length > MAX_BODY ? `${text.slice(0, MAX_BODY)} …` : text
}

/** A value without what says little to a person. */
function simplify(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(simplify)
    return items.length === 1 ? items[0] : items
  }
  if (typeof value !== 'object' || value === null) return value
  const { type, text } = value as { readonly type?: unknown; readonly text?: unknown }
  if (type === 'text') return text
  const { name, parts } = value as { readonly name?: unknown; readonly parts?: unknown }
  if (parts !== undefined) return simplify(parts)
  const fields = Object.entries(value).filter(([field]) => !left.has(field) && field !== 'type')
  const rest = Object.fromEntries(fields.map(([field, each]) => [field, simplify(each)]))
  return typeof name === 'string' ? { [name]: 'input' in rest ? rest['input'] : rest } : rest
}

/** Texts of models and tools are hostile. */
function makeVisible(text: string): string {
  return text.replace(unseen, (char) =>
    char === '\n' ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}
