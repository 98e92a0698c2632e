import { callEventTypes, phases } from '@tallystick/core/internal'
import { listLegalEvents, transitionTable } from '@tallystick/core/machine'
import { eventTraits, type EventType, eventTypes } from '@tallystick/core/vocabulary'
import { eventSchemas } from '@tallystick/core/schemas'
import { code, table } from './table.ts'
import { commonFields } from './common-fields.ts'
import { type Declaration, type Field, vocabularyTypes } from './declarations.ts'

/** The event reference, as Markdown. */
export function eventsPage(): string {
  const types = vocabularyTypes()
  const bodies = findBodies(types)
  const parts = findParts(types, bodies)
  const sections = [
    intro(),
    envelope(types, parts),
    overview(),
    whereLegal(),
    '## The events',
    ...eventTypes.map((type) => eventSection(type, bodies, parts)),
    '## Their parts\n\nThe types of the fields above, by name.',
    ...[...parts.values()].map((part) => partSection(part, parts)),
  ]
  return `${sections.join('\n\n')}\n`
}

type Bodies = ReadonlyMap<string, Field>
type Parts = ReadonlyMap<string, Declaration>

function intro(): string {
  return `# Events

Every event type that a ledger can hold: its meaning, its fields, the phases in which it is legal, and where it is visible.
\`pnpm docs:events\` makes this page from the schemas and comments in \`packages/core/src/events\`, and a test keeps the two in step.

Names and fields of events are a public format ([how it is kept](versions.md)). An _optional_ field may be missing, but is never
\`null\`. Times are milliseconds since 1970 UTC, digests SHA-256 in hex, money US dollars.`
}

function envelope(types: Parts, parts: Parts): string {
  const declared = types.get('EventEnvelope')
  if (!declared?.fields) throw new Error('event-envelope.ts declares no EventEnvelope with fields.')
  return `## On every event

${fieldTable([typeField(), ...declared.fields], parts)}`
}

function typeField(): Field {
  const doc = 'The name of the event, as in the sections below.'
  return { name: 'type', type: 'EventType', optional: false, doc, refers: [] }
}

const historyWords = { yes: 'yes', as_message: 'as part of the message', no: 'no' } as const

function overview(): string {
  const rows = eventTypes.map((type) => {
    const { modelHistory, retention, durability, v } = eventTraits[type]
    return [`[${code(type)}](#${type})`, historyWords[modelHistory], retention, durability, String(v)]
  })
  return `## Where they are visible

Every event is in the ledger and on \`run.events$\`. A model never reads events: it reads the history, which is made from those
marked here. _Deltas_ only show progress, and retention may remove their content earlier than that of _facts_.

A _barrier_ is synced to the disk before anything follows from it. A _lazy_ event survives a process that is killed at once; it is
synced with the next barrier, or soon without one. The result of a call that may run again is lazy. So is the first start of a call
that also only reads (recorded as \`effect: 'read'\` and \`recovery: 'rerun'\`), unless a person approved it, or it starts a child
run or hands over. The last event before a run stops is a barrier.

${table(['event', 'adds to what a model reads', 'kept as', 'durability', 'version'], rows)}`
}

function whereLegal(): string {
  const rows = eventTypes.map((type) => [
    code(type),
    ...phases.map((phase) => {
      const to = transitionTable[phase][type]
      if (to === undefined) return ''
      return to === phase ? 'stays' : `→ ${to}`
    }),
  ])
  return `## Where they are legal

The transition table: the phases in which an event is legal, and the phase to which it leads. An event that is not legal in its
phase is an [\`illegal_transition\`](troubleshooting.md#illegal_transition). \`run_started\` is the first event of each run,
legal nowhere else, and leads to \`idle\`.

${table(['event', ...phases], rows)}`
}

function eventSection(type: EventType, bodies: Bodies, parts: Parts): string {
  const body = bodies.get(type)
  if (!body) throw new Error(`event.ts declares no body of ${type}.`)
  const fields = listFields(body, parts)
  requireSameFields(type, fields)
  const legal = phases.filter((phase) => listLegalEvents(phase).includes(type))
  const where = type === 'run_started' ? 'first of all' : legal.map(code).join(', ')
  const call = (callEventTypes as readonly EventType[]).includes(type)
    ? ' Concerns the tool call `toolCallId`.'
    : ''
  return `### ${type}

${body.doc}${call} Legal: ${where}.

${fieldTable(fields, parts)}`
}

/** The fields of a body that is written out, or of the type that it names. */
function listFields(body: Field, parts: Parts): readonly Field[] {
  const fields = body.fields ?? parts.get(body.type)?.fields
  if (!fields) throw new Error(`The body of ${body.name} is ${body.type}, which has no fields.`)
  return fields
}

/** A page that tells of other fields than the schemas check would be wrong about the format. */
function requireSameFields(type: EventType, fields: readonly Field[]): void {
  const declared = fields.map(({ name, optional }) => `${name}${optional ? '?' : ''}`).toSorted()
  // `objectOf` makes schemas of objects, which have a shape.
  const { shape } = eventSchemas[type] as unknown as {
    readonly shape: Readonly<Record<string, { readonly type: string }>>
  }
  const checked = Object.entries(shape)
    .map(([name, schema]) => `${name}${schema.type === 'optional' ? '?' : ''}`)
    .toSorted()
  if (declared.join() !== checked.join()) {
    throw new Error(`${type} is declared with ${declared.join()}, and checked for ${checked.join()}.`)
  }
}

function findBodies(types: Parts): Bodies {
  const declared = types.get('EventBodies')?.fields ?? []
  return new Map(declared.map((field) => [field.name, withHeads(field, types)]))
}

/** A body with the fields of the types that it is joined with. */
function withHeads(body: Field, types: Parts): Field {
  const { heads = [], fields = [] } = body
  if (heads.length === 0) return body
  const joined = heads.flatMap((name) => types.get(name)?.fields ?? [])
  const all = [...fields, ...joined]
  return { ...body, fields: all, refers: all.flatMap(({ refers }) => refers) }
}

/** The types that stored events are made of, by name: those that bodies and the envelope name, and those that they name. */
function findParts(types: Parts, bodies: Bodies): Parts {
  const found = new Map<string, Declaration>()
  const add = (name: string): void => {
    const declared = types.get(name)
    if (!declared || found.has(name)) return
    found.set(name, declared)
    for (const each of declared.refers) add(each)
  }
  const envelopeTypes = types.get('EventEnvelope')?.refers ?? []
  for (const name of [...envelopeTypes, ...[...bodies.values()].flatMap(({ refers }) => refers)]) add(name)
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function partSection({ name, doc, fields, words, type }: Declaration, parts: Parts): string {
  const lines = [`### ${name}`]
  if (doc !== '') lines.push(doc)
  if (words) lines.push(`One of ${words.map(code).join(', ')}.`)
  // A brand is for the compiler alone: what is stored is the string.
  else if (type?.startsWith('string & ')) lines.push('A string.')
  else if (type !== undefined)
    lines.push(fields ? `Has all fields of ${typeCell(type, [], parts)}.` : typeCell(type, [], parts))
  if (fields && fields.length > 0) lines.push(fieldTable(fields, parts))
  return lines.join('\n\n')
}

function fieldTable(fields: readonly Field[], parts: Parts): string {
  const rows = fields.map(({ name, type, optional, doc, refers }) => [
    code(name),
    `${typeCell(type, refers, parts)}${optional ? ', optional' : ''}`,
    (doc || (commonFields[name] ?? '')).replaceAll('|', '\\|'),
  ])
  return table(['field', 'type', 'meaning'], rows)
}

/** A type, as code, with links to the parts that it names. */
function typeCell(type: string, refers: readonly string[], parts: Parts): string {
  const linked = refers.filter((name) => parts.has(name))
  const [only] = linked
  if (linked.length === 1 && only !== undefined && (type === only || type === `${only}[]`)) {
    return `[${code(type)}](#${only.toLowerCase()})`
  }
  const links = linked.map((name) => `[${name}](#${name.toLowerCase()})`)
  const text = code(type.replaceAll('|', '\\|'))
  return links.length > 0 ? `${text} (${links.join(', ')})` : text
}
