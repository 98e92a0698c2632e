import type { Ledger, RuntimeEvent } from '@tallystick/core'
import type { RunId } from '@tallystick/core/vocabulary'
import { changesOf, shownEvent } from '@tallystick/core/kit'
import type { Hono } from 'hono'
import { RefusedRequestError, runNotFound } from '../http/problem.ts'
import { requireVisible } from '../access/visible-run.ts'
import { followedStream } from '../stream/followed-stream.ts'
import { frameText, streamHeaders } from '../stream/sse-frame.ts'
import { json, maxPage, maxPageLength, numberParameter, type RequestScope, type Served } from './served.ts'

/** Adds the events of a run: as a stream that follows it, or as a page of those that are recorded. */
export function addEvents(app: Hono<RequestScope>, served: Served): void {
  const { ledger } = served
  app.get('/runs/:run/events', async (context) => {
    const { req } = context
    const runId = await requireVisible(ledger, context.get('principal'), req.param('run'))
    const last = req.header('last-event-id')
    const after = numberParameter('after', last === '' ? undefined : (last ?? req.query('after'))) ?? 0
    if (!req.header('accept')?.includes('text/event-stream')) {
      const limit = Math.min(maxPage, numberParameter('limit', req.query('limit')) ?? maxPage)
      return json(await readRunPage(ledger, runId, after, limit))
    }
    // A reader that has every event of an ended run is asked not to come back.
    if (await isAtEnd(ledger, runId, after)) return new Response(null, { status: 204 })
    const stream = followedStream<RuntimeEvent>(
      {
        changes: changesOf(served.reads.forReader(), runId, { after }),
        textOf: (event) => frameText({ id: String(event.seq), data: served.reads.textOf(event) }),
        isLast: ({ type }) => type === 'run_finished',
      },
      served.stream,
    )
    return new Response(stream, { headers: streamHeaders })
  })
}

/** Whether the event is the last of a run that has ended. */
async function isAtEnd(ledger: Ledger, runId: RunId, seq: number): Promise<boolean> {
  const head = await ledger.head(runId)
  if (head === undefined) throw runNotFound(runId)
  if (seq < head.seq) return false
  if (seq > head.seq) {
    throw new RefusedRequestError(
      400,
      'malformed',
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
