import type { Ledger } from '@tallystick/core'
import { changesOfEveryRun, shownEvent } from '@tallystick/core/kit'
import type { RunId, TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import type { Principal } from '../access/principal.ts'
import { isVisible } from '../access/visible-run.ts'
import { followedStream } from '../stream/followed-stream.ts'
import { frameText, streamHeaders } from '../stream/sse-frame.ts'
import { json, maxPage, numberParameter, type RequestScope, type Served } from './served.ts'

/** Adds the events of all runs that a caller sees, with one cursor: as a stream, or as a page. */
export function addAllEvents(app: Hono<RequestScope>, { ledger, stream: host }: Served): void {
  app.get('/events', async (context) => {
    const { req } = context
    const after = req.header('last-event-id') || req.query('after') || undefined
    // A cursor of another ledger is refused before the stream begins.
    await firstAfter(ledger, after)
    const isSeen = visibility(ledger, context.get('principal'))
    if (!req.header('accept')?.includes('text/event-stream')) {
      const limit = Math.min(maxPage, numberParameter('limit', req.query('limit')) ?? maxPage)
      return json(await eventPage(ledger, after, limit, isSeen))
    }
    const stream = followedStream<TailedEvent>(
      {
        changes: changesOfEveryRun(ledger, after),
        // A frame without data moves the cursor of the reader past an event that it does not see.
        textOf: async ({ cursor, event }) =>
          (await isSeen(event.runId))
            ? frameText({ id: cursor, data: JSON.stringify(shownEvent(event)) })
            : `id: ${cursor}\n\n`,
        isLast: () => false,
      },
      host,
    )
    return new Response(stream, { headers: streamHeaders })
  })
}

async function firstAfter(ledger: Ledger, after: TailCursor | undefined): Promise<void> {
  for await (const _ of ledger.tail(after)) return
}

/** How many runs a stream remembers whether its reader sees them. */
const maxRemembered = 10_000

/**
 * Decides whether a principal sees a run. The facts that decide it never change, so they are read once for each run.
 */
function visibility(ledger: Ledger, principal: Principal): (runId: RunId) => Promise<boolean> {
  const known = new Map<RunId, boolean>()
  return async (runId) => {
    const seen = known.get(runId) ?? (await isVisible(ledger, principal, runId))
    if (known.size >= maxRemembered) known.clear()
    known.set(runId, seen)
    return seen
  }
}

async function eventPage(
  ledger: Ledger,
  after: TailCursor | undefined,
  limit: number,
  isSeen: (runId: RunId) => Promise<boolean>,
): Promise<{ readonly events: readonly TailedEvent[]; readonly after?: TailCursor }> {
  const events: TailedEvent[] = []
  let [last, looked] = [after, 0]
  for await (const tailed of ledger.tail(after)) {
    last = tailed.cursor
    if (await isSeen(tailed.event.runId)) events.push({ ...tailed, event: shownEvent(tailed.event) })
    if (events.length >= limit || ++looked >= 5_000) break
  }
  return { events, ...(last !== undefined && { after: last }) }
}
