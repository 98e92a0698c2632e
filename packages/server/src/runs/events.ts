import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { shownEvent } from '@tallystick/core/internal'
import { changesOf, changesOfEveryRun } from '@tallystick/core/store-kit'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import type { PlacedList, SealedPlaces } from '../http/cursors.ts'
import { isVisible, type Principal, requireVisible } from '../http/principal.ts'
import { malformed, runNotFound } from '../http/problem.ts'
import {
  respondJson,
  maxPage,
  maxPageLength,
  parseNumber,
  type RequestScope,
  type Served,
} from '../http/served.ts'
import { map } from 'rxjs'
import { mergeFrames } from '../stream/live-text.ts'
import { streamChanges, formatFrame, streamHeaders } from '../stream/followed-stream.ts'
import { type Operations } from '../http/openapi.ts'

/** Adds the events of a run: as a stream that follows it, or as a page of those that are recorded. */
export function addEvents(app: Hono<RequestScope>, served: Served): void {
  const { ledger } = served
  app.get('/runs/:run/events', async (context) => {
    const { req } = context
    const runId = await requireVisible(ledger, context.get('principal'), req.param('run'))
    const last = req.header('last-event-id')
    const after = parseNumber('after', last === '' ? undefined : (last ?? req.query('after'))) ?? 0
    if (!req.header('accept')?.includes('text/event-stream')) {
      const limit = Math.min(maxPage, parseNumber('limit', req.query('limit')) ?? maxPage)
      return respondJson(await readRunPage(ledger, runId, after, limit))
    }
    // A reader that has every event of an ended run is asked not to come back.
    if (await isAtEnd(ledger, runId, after)) return new Response(null, { status: 204 })
    const stream = streamChanges<RuntimeEvent>(
      {
        changes: changesOf(served.reads.forReader(), runId, { after }),
        textOf: (event) => formatFrame({ id: String(event.seq), data: served.reads.textOf(event) }),
        isLast: ({ type }) => type === 'run_finished',
      },
      served.stream,
    )
    const live$ = served.liveTexts?.of(runId)
    if (live$ === undefined) return new Response(stream, { headers: streamHeaders })
    const frames$ = live$.pipe(
      map((piece) => `event: live_text\n${formatFrame({ data: JSON.stringify(piece) })}`),
    )
    const merged = mergeFrames(stream, frames$, (error) =>
      served.stream.report(error, `Readers of run ${runId} get no live text`),
    )
    return new Response(merged, { headers: streamHeaders })
  })
}

/** Returns true if the event is the last of a run that has ended. */
async function isAtEnd(ledger: Ledger, runId: RunId, seq: number): Promise<boolean> {
  const head = await ledger.head(runId)
  if (head === undefined) throw runNotFound(runId)
  if (seq < head.seq) return false
  if (seq > head.seq) {
    throw malformed(
      `Run ${runId} has no event ${seq} to continue after: its last is ${head.seq}. Read it from 0.`,
    )
  }
  for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
    return event.type === 'run_finished'
  }
  return false
}

async function readRunPage(
  ledger: Ledger,
  runId: RunId,
  after: number,
  limit: number,
): Promise<{ readonly events: readonly RuntimeEvent[]; readonly after: number }> {
  const events: RuntimeEvent[] = []
  let length = 0
  for await (const event of ledger.read(runId, { fromSeq: after + 1, toSeq: after + limit })) {
    const shown = shownEvent(event)
    length += JSON.stringify(shown).length
    if (events.length > 0 && length > maxPageLength) break
    events.push(shown)
  }
  return { events, after: events.at(-1)?.seq ?? after }
}

/** After this many events that its reader does not see, a stream moves the reader's place. */
const maxUnplaced = 1_000

/** Adds the events of all runs that a caller sees, with one cursor: as a stream, or as a page. */
export function addAllEvents(app: Hono<RequestScope>, { ledger, places, stream: host }: Served): void {
  app.get('/events', async (context) => {
    const { req } = context
    const principal = context.get('principal')
    const cursors = new EventCursors(places, principal)
    const given = req.header('last-event-id') || req.query('after') || undefined
    const after = await cursors.open(given)
    // A cursor of another ledger is refused before the stream begins.
    await firstAfter(ledger, after)
    const isSeen = createVisibility(ledger, principal)
    if (!req.header('accept')?.includes('text/event-stream')) {
      const limit = Math.min(maxPage, parseNumber('limit', req.query('limit')) ?? maxPage)
      return respondJson(await readTailPage(ledger, { after, given, limit, isSeen, cursors }))
    }
    let unseen = 0
    const stream = streamChanges<TailedEvent>(
      {
        changes: changesOfEveryRun(ledger, after),
        textOf: async ({ cursor, event }) => {
          const isShown = await isSeen(event.runId)
          unseen = isShown || unseen === maxUnplaced ? 0 : unseen + 1
          if (isShown) return formatFrame({ id: cursor, data: JSON.stringify(shownEvent(event)) })
          // A frame without data moves the cursor of the reader.
          return unseen === maxUnplaced ? `id: ${await cursors.seal(cursor)}\n\n` : ''
        },
        isLast: () => false,
      },
      host,
    )
    return new Response(stream, { headers: streamHeaders })
  })
}

/** The beginning of cursors at events that the reader does not see: they are encrypted, since they name the run. */
const sealedMark = 'sealed:'

/** The cursors of a reader: those of events that it sees are the ledger's. */
class EventCursors {
  readonly #places: SealedPlaces
  readonly #list: PlacedList

  constructor(places: SealedPlaces, principal: Principal) {
    this.#places = places
    this.#list = { of: 'events', principal }
  }

  async seal(cursor: TailCursor): Promise<TailCursor> {
    return `${sealedMark}${await this.#places.seal(cursor, this.#list)}`
  }

  async open(given: TailCursor | undefined): Promise<TailCursor | undefined> {
    if (!given?.startsWith(sealedMark)) return given
    const cursor = await this.#places.open(given.slice(sealedMark.length), this.#list)
    if (cursor !== undefined) return cursor
    throw malformed(
      'after is not a place that this server gave you. Continue after an event that you have, or read from the start.',
    )
  }
}

async function firstAfter(ledger: Ledger, after: TailCursor | undefined): Promise<void> {
  for await (const _ of ledger.tail(after)) return
}

/** A stream remembers for this many runs if its reader sees them. */
const maxRemembered = 10_000

/**
 * Decides whether a principal sees a run. The facts that decide it never change, so they are read once for each run.
 */
function createVisibility(ledger: Ledger, principal: Principal): (runId: RunId) => Promise<boolean> {
  const known = new Map<RunId, boolean>()
  return async (runId) => {
    const seen = known.get(runId) ?? (await isVisible(ledger, principal, runId))
    if (known.size >= maxRemembered) known.clear()
    known.set(runId, seen)
    return seen
  }
}

interface AskedEvents {
  readonly after: TailCursor | undefined
  /** The place as the caller gave it, which may be sealed. */
  readonly given: TailCursor | undefined
  readonly limit: number
  readonly isSeen: (runId: RunId) => Promise<boolean>
  readonly cursors: EventCursors
}

async function readTailPage(
  ledger: Ledger,
  { after, given, limit, isSeen, cursors }: AskedEvents,
): Promise<{ readonly events: readonly TailedEvent[]; readonly after?: TailCursor }> {
  const events: TailedEvent[] = []
  let looked = 0
  let length = 0
  let unseen: TailCursor | undefined
  for await (const tailed of ledger.tail(after)) {
    const isShown = await isSeen(tailed.event.runId)
    if (isShown) {
      const shown = { ...tailed, event: shownEvent(tailed.event) }
      length += JSON.stringify(shown).length
      if (events.length > 0 && length > maxPageLength) break
      events.push(shown)
    }
    unseen = isShown ? undefined : tailed.cursor
    if (events.length >= limit || ++looked >= 5_000) break
  }
  const last = unseen === undefined ? (events.at(-1)?.cursor ?? given) : await cursors.seal(unseen)
  return { events, ...(last !== undefined && { after: last }) }
}

/** The routes of `addEvents` and `addAllEvents`. */
export const eventOperations: Operations = {
  'GET /runs/:run/events': {
    operationId: 'followRun',
    summary: 'The events of a run: a page of them, or a stream that follows the run to its end.',
    parameters: ['after', 'limit', 'Last-Event-ID'],
    answers: { 200: 'The events.', 204: 'The run has ended, and the reader of the stream has all of it.' },
    fields: ['events', 'after'],
    stream: 'accepted',
  },
  'GET /events': {
    operationId: 'followAllRuns',
    summary: 'The events of all runs that the caller sees: a page of them, or a stream.',
    parameters: ['after', 'limit', 'Last-Event-ID'],
    answers: { 200: 'The events, each with its cursor.' },
    fields: ['events'],
    stream: 'accepted',
  },
}
