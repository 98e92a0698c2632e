import { type Ledger, type RunId, TallystickError } from '@tallystick/core'
import { isRunDriven, omitUndefined } from '@tallystick/core/internal'
import { parseRunId, toCanonicalJson } from '@tallystick/core/vocabulary'
import type { Due, Hit, HitPage, Stats } from '@tallystick/inspector'
import {
  type EventSearch,
  type FoundEvent,
  type InputQuery,
  listLeases,
  readRunStats,
  readRunSummaries,
  type RunSummary,
  searchEvents,
} from '@tallystick/ledger'
import type { PlacedList } from '../http/cursors.ts'
import { canSee, isVisible, type Principal, readRootStart } from '../http/principal.ts'
import { createMalformedError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { listSubjects, parseNumber, parsePageSize, respondJson, type Served } from '../http/served.ts'
import {
  type AskedRuns,
  findBegin,
  hasAskedStatus,
  readRunFilters,
  runFilters,
  toRowStatus,
  toSummaryFilter,
} from './list.ts'

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs
const lengths: ReadonlyMap<string, number> = new Map([
  ['hour', hourMs],
  ['day', dayMs],
])
/** The most parts of time that one request asks for: more are no chart. */
const maxParts = 1_000

/** The most runs that a page of due runs, or of hits, looks at. */
const maxLooked = { due: 1_000, search: 300 }

/** Adds the routes over all runs: what became of them over time, what is due and who drives what, and a search. */
export function addOverview(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  routes.get(
    '/stats',
    {
      operationId: 'readStats',
      summary:
        'How many runs began in each hour or day, what became of them, and what they cost and took. Child runs count as parts of their root.',
      parameters: ['startedSince', 'startedUntil', 'by'],
      answers: { 200: 'The parts of time in which runs began.' },
      fields: ['buckets'],
    },
    async ({ principal, req }) => {
      const until = parseNumber('startedUntil', req.query('startedUntil'))
      const end = until ?? served.stream.clock.now()
      const since = parseNumber('startedSince', req.query('startedSince')) ?? end - dayMs
      const by = req.query('by') ?? 'hour'
      const byMs = lengths.get(by)
      if (byMs === undefined) throw createMalformedError('by has to be hour or day.')
      const parts = Math.ceil((end - since) / byMs)
      if (parts > maxParts) {
        throw createMalformedError(
          `That is ${parts} parts of time, and ${maxParts} is the most. Ask for a shorter time${by === 'hour' ? ', or by=day' : ''}.`,
        )
      }
      const buckets = await readRunStats(ledger, {
        ...{ since, until: until ?? Number.MAX_SAFE_INTEGER, byMs },
        ...omitUndefined({ subjects: listSubjects(principal), isSeen: toJudge(principal) }),
      })
      return respondJson({ buckets } satisfies Stats)
    },
  )
  routes.get(
    '/due',
    {
      operationId: 'listDue',
      summary: 'The runs that have something to do and when, and which process drives which run.',
      parameters: ['limit'],
      answers: { 200: 'The runs that nobody drives, the earliest first, and the leases.' },
      fields: ['due', 'leases'],
    },
    async ({ principal, req }) =>
      respondJson(await readDue(ledger, principal, parsePageSize(req.query('limit')))),
  )
  routes.get(
    '/search',
    {
      operationId: 'search',
      summary:
        'Messages and calls with a text, of a tool, with an outcome or an input, in the runs that the caller sees, the newest run first. A page may hold few or none, while more follow `after` it.',
      parameters: ['q', 'input', ...runFilters, 'after', 'limit'],
      answers: { 200: 'The hits.' },
      fields: ['hits'],
    },
    async ({ principal, req }) => {
      const inputs = (req.queries('input') ?? []).map(parseInput)
      const among = readRunFilters(req)
      const { tool, outcome, sessionId } = among
      const text = req.query('q') || undefined
      const list: PlacedList = { of: 'runs', principal, sessionId }
      return respondJson(
        await search(served, list, {
          limit: parsePageSize(req.query('limit')),
          wanted: { call: { inputs, ...omitUndefined({ tool, outcome }) }, ...omitUndefined({ text }) },
          among,
          ...omitUndefined({ after: req.query('after') }),
        }),
      )
    },
  )
}

/** Decides which runs count, where a list of subjects does not say it. */
function toJudge(principal: Principal): Parameters<typeof readRunStats>[1]['isSeen'] {
  const { sees } = principal
  const isListed = sees === 'everything' || (!sees.agents && !sees.sessions && listSubjects(principal))
  return isListed ? undefined : (facts) => canSee(principal, facts)
}

async function readDue(ledger: Ledger, principal: Principal, limit: number): Promise<Due> {
  const due: Due['due'][number][] = []
  let looked = 0
  for await (const { runId, dueAt } of ledger.due({ before: Number.MAX_SAFE_INTEGER })) {
    const root = await readRootStart(ledger, runId)
    if (root && canSee(principal, root))
      due.push({ runId, at: dueAt, agent: root.agent, ...(await readScheduleName(ledger, runId)) })
    if (due.length >= limit || ++looked >= maxLooked.due) break
  }
  const leases: Due['leases'][number][] = []
  for (const lease of await listLeases(ledger, maxLooked.due)) {
    if (leases.length >= limit) break
    if (await isVisible(ledger, principal, lease.runId))
      leases.push({ ...lease, ...(await readScheduleName(ledger, lease.runId)) })
  }
  return { due, leases }
}

/** What a schedule is called, or goes by; nothing for any other run. Its second event says it. */
async function readScheduleName(ledger: Ledger, runId: RunId): Promise<{ readonly schedule?: string }> {
  for await (const event of ledger.read(runId, { fromSeq: 2, toSeq: 2 })) {
    if (event.type !== 'schedule_set') continue
    const { name, cron, timeZone, onceAt, everyMs } = event
    const at = onceAt === undefined ? `every ${everyMs} ms` : new Date(onceAt).toISOString()
    return { schedule: name ?? (cron === undefined ? at : `${cron} ${timeZone}`) }
  }
  return {}
}

function parseInput(text: string): InputQuery {
  const at = text.indexOf('=')
  if (at >= 1) return { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
  throw createMalformedError('input has to be a path and a value, such as order.id=17.')
}

interface AskedSearch {
  readonly limit: number
  readonly wanted: Pick<EventSearch, 'call' | 'text'>
  /** The runs that are searched. */
  readonly among: AskedRuns
  readonly after?: string
}

/** Searches run by run, the newest first: of those that have a call of a tool or an outcome, an index knows. */
async function search(
  served: Served,
  list: PlacedList,
  { limit, wanted, among, after }: AskedSearch,
): Promise<HitPage> {
  const { ledger, places } = served
  const { principal } = list
  const hits: Hit[] = []
  const [begin, seq] = after === undefined ? [] : await parsePlace(served, list, after)
  const searchRun = async (runId: RunId, past?: number): Promise<string | undefined> => {
    let isPast = past === undefined
    for await (const found of searchEvents(ledger, { ...wanted, runId })) {
      if (isPast) hits.push(toHit(found, wanted.text))
      isPast ||= found.seq === past
      if (hits.length >= limit) return `${runId}.${found.seq}`
    }
    return undefined
  }
  if (begin !== undefined && seq !== undefined) {
    const next = await searchRun(begin, seq)
    if (next !== undefined) return { hits, after: next }
  }
  // No summary says who drives a run.
  const isAmong = async (runId: RunId, status: RunSummary['status']): Promise<boolean> =>
    status !== 'unfinished' ||
    among.statuses === undefined ||
    hasAskedStatus(toRowStatus(status, await isRunDriven(ledger, runId)), among.statuses)
  let looked = 0
  const filter = toSummaryFilter(served, principal, { ...among, ...omitUndefined({ begin }) })
  for await (const { runId, status } of readRunSummaries(ledger, filter)) {
    const isSeen = principal.sees === 'everything' || (await isVisible(ledger, principal, runId))
    if (isSeen && status !== 'unreadable' && (await isAmong(runId, status))) {
      const next = await untilDamage(() => searchRun(runId))
      if (next !== undefined) return { hits, after: next }
    }
    if (++looked >= maxLooked.search) return { hits, after: isSeen ? runId : await places.seal(runId, list) }
  }
  return { hits }
}

/** A damaged event must not hide what is in other runs: verify names it. */
async function untilDamage<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TallystickError && error.code === 'ledger_damaged') return undefined
    throw error
  }
}

/** The run at which a page ended, and the last hit in it. */
async function parsePlace(
  served: Served,
  list: PlacedList,
  text: string,
): Promise<readonly [RunId, number | undefined]> {
  const [id = '', seq] = text.split('.')
  if (parseRunId(id) === undefined) return [await findBegin(served, list, text), undefined]
  return [await findBegin(served, list, id), parseNumber('after', seq)]
}

const maxExcerpt = 200
/** At most this many characters are shown before the text that was found. */
const charactersBefore = 60

function toHit(found: FoundEvent, text: string | undefined): Hit {
  const { runId, seq, at, type, toolCallId, tool, outcome, turn } = found
  const input = found.input === undefined ? [] : [toCanonicalJson(found.input)]
  const whole = [tool, ...input, found.text].filter(Boolean).join(' ')
  const place = text === undefined ? -1 : whole.toLowerCase().indexOf(text.toLowerCase())
  const from = Math.max(0, place - charactersBefore)
  const excerpt = `${from > 0 ? '…' : ''}${whole.slice(from, from + maxExcerpt)}${whole.length > from + maxExcerpt ? '…' : ''}`
  return { runId, seq, at, type, excerpt, turn, ...omitUndefined({ toolCallId, tool, outcome }) }
}
