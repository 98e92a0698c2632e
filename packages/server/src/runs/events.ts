import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { toShownEvent } from '@tallystick/core/internal'
import { followChanges, followAllChanges } from '@tallystick/core/store-kit'
import { isAfterEnd, type TailCursor, type TailedEvent } from '@tallystick/core/vocabulary'
import type { HonoRequest } from 'hono'
import { map } from 'rxjs'
import { isVisible } from '../http/principal.ts'
import { createMalformedError, createRunNotFoundError } from '../http/problem.ts'
import type { Operation, Routes } from '../http/routes.ts'
import { respondJson, maxPage, maxPageLength, parseNumber } from '../http/served.ts'
import { formatFrame, readChunks, streamChunks, streamHeaders } from '../stream/follow.ts'

/** Both routes of events answer with a page or a stream. */
const pageOrStream: Pick<Operation, 'parameters' | 'stream'> = {
  parameters: ['after', 'limit', 'Last-Event-ID'],
  stream: 'accepted',
}

function wantsStream(req: HonoRequest): boolean {
  return req.header('accept')?.includes('text/event-stream') === true
}

function parseLimit(req: HonoRequest): number {
  return Math.min(maxPage, parseNumber('limit', req.query('limit')) ?? maxPage)
}

/** Adds the events of a run: as a stream that follows it, or as a page of those that are recorded. */
export function addEvents(routes: Routes): void {
  const { ledger, reads, stream: host, liveRuns } = routes.served
  routes.get(
    '/runs/:run/events',
    {
      operationId: 'followRun',
      summary: 'The events of a run: a page of them, or a stream that follows the run to its end.',
      answers: { 200: 'The events.', 204: 'The run has ended, and the reader of the stream has all of it.' },
      fields: ['events', 'after'],
      events:
        'Each event of the run, with its `seq` as id. If the server has `liveText`, also events named `live_text` without an id: `{ turn, attempt, part, text, replaces? }`, the text of a reply before it is on record.',
      ...pageOrStream,
    },
    async ({ runId, req }) => {
      const last = req.header('last-event-id')
      const after = parseNumber('after', last === '' ? undefined : (last ?? req.query('after'))) ?? 0
      if (!wantsStream(req)) return respondJson(await readRunPage(ledger, runId, after, parseLimit(req)))
      // A reader that has every event of an ended run is asked not to come back.
      if (await isAtEnd(ledger, runId, after)) return new Response(null, { status: 204 })
      // The feedback that a run has by now follows its end.
      let isOver = false
      const followed = {
        changes: followChanges(reads.forReader(), runId, { after }),
        format: (event: RuntimeEvent) => formatFrame({ id: String(event.seq), data: reads.format(event) }),
        isLast: (event: RuntimeEvent) => {
          isOver = isAfterEnd(event)
          return false
        },
        endAtWait: async () => (isOver ? '' : undefined),
      }
      const live$ = liveRuns
        ?.get(runId)
        ?.liveText$.pipe(map((piece) => `event: live_text\n${formatFrame({ data: JSON.stringify(piece) })}`))
      const stream = streamChunks((signal) => readChunks(followed, host, signal), host, live$)
      return new Response(stream, { headers: streamHeaders })
    },
  )
}

/** Returns true if the event is the last of a run that has ended. */
async function isAtEnd(ledger: Ledger, runId: RunId, seq: number): Promise<boolean> {
  const head = await ledger.head(runId)
  if (head === undefined) throw createRunNotFoundError(runId)
  if (seq < head.seq) return false
  if (seq > head.seq) {
    throw createMalformedError(
      `Run ${runId} has no event ${seq} to continue after: its last is ${head.seq}. Read it from 0.`,
    )
  }
  for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
    return isAfterEnd(event)
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
    const shown = toShownEvent(event)
    length += JSON.stringify(shown).length
    if (events.length > 0 && length > maxPageLength) break
    events.push(shown)
  }
  return { events, after: events.at(-1)?.seq ?? after }
}

/** After this many events that its reader does not see, a stream moves the reader's place. */
const maxUnplaced = 1_000

/** The beginning of cursors at events that the reader does not see: they are encrypted, since they name the run. */
const sealedMark = 'sealed:'

/** A reader remembers for this many runs whether it sees them. The facts that decide it never change. */
const maxRemembered = 10_000

/** Adds the events of all runs that a caller sees, with one cursor: as a stream, or as a page. */
export function addAllEvents(routes: Routes): void {
  const { ledger, places, stream: host } = routes.served
  routes.get(
    '/events',
    {
      operationId: 'followAllRuns',
      summary: 'The events of all runs that the caller sees: a page of them, or a stream.',
      answers: { 200: 'The events, each with its cursor.' },
      fields: ['events'],
      events: 'Each event, with its cursor as id. A frame without data moves the cursor of the reader.',
      ...pageOrStream,
    },
    async ({ principal, req }) => {
      const list = { of: 'events', principal } as const
      const seal = async (cursor: TailCursor): Promise<TailCursor> =>
        `${sealedMark}${await places.seal(cursor, list)}`
      const known = new Map<RunId, boolean>()
      const isSeen = async (runId: RunId): Promise<boolean> => {
        const seen = known.get(runId) ?? (await isVisible(ledger, principal, runId))
        if (known.size >= maxRemembered) known.clear()
        known.set(runId, seen)
        return seen
      }
      const given = req.header('last-event-id') || req.query('after') || undefined
      const after = given?.startsWith(sealedMark)
        ? await places.open(given.slice(sealedMark.length), list)
        : given
      if (given !== undefined && after === undefined) {
        throw createMalformedError(
          'after is not a place that this server gave you. Continue after an event that you have, or read from the start.',
        )
      }
      // A cursor of another ledger is refused before the stream begins.
      for await (const _ of ledger.tail(after)) break
      if (!wantsStream(req)) {
        const { events, unseen } = await readTailPage(ledger, after, parseLimit(req), isSeen)
        const last = unseen === undefined ? (events.at(-1)?.cursor ?? given) : await seal(unseen)
        return respondJson({ events, ...(last !== undefined && { after: last }) })
      }
      let unseen = 0
      const followed = {
        changes: followAllChanges(ledger, after),
        format: async ({ cursor, event }: TailedEvent) => {
          const isShown = await isSeen(event.runId)
          unseen = isShown || unseen === maxUnplaced ? 0 : unseen + 1
          if (isShown) return formatFrame({ id: cursor, data: JSON.stringify(toShownEvent(event)) })
          return unseen === maxUnplaced ? `id: ${await seal(cursor)}\n\n` : ''
        },
        isLast: () => false,
      }
      const stream = streamChunks((signal) => readChunks(followed, host, signal), host)
      return new Response(stream, { headers: streamHeaders })
    },
  )
}

/** Reads a page, and the cursor of its last event if the reader does not see that. */
async function readTailPage(
  ledger: Ledger,
  after: TailCursor | undefined,
  limit: number,
  isSeen: (runId: RunId) => Promise<boolean>,
): Promise<{ readonly events: readonly TailedEvent[]; readonly unseen: TailCursor | undefined }> {
  const events: TailedEvent[] = []
  let looked = 0
  let length = 0
  let unseen: TailCursor | undefined
  for await (const tailed of ledger.tail(after)) {
    const isShown = await isSeen(tailed.event.runId)
    if (isShown) {
      const shown = { ...tailed, event: toShownEvent(tailed.event) }
      length += JSON.stringify(shown).length
      if (events.length > 0 && length > maxPageLength) break
      events.push(shown)
    }
    unseen = isShown ? undefined : tailed.cursor
    if (events.length >= limit || ++looked >= 5_000) break
  }
  return { events, unseen }
}
