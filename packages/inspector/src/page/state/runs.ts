import { effect, signal } from '@preact/signals'
import type { RowStatus, RunQuery, RunRow, Self } from '../../api.ts'
import { rowStatuses } from '../../api.ts'
import { route } from './route.ts'
import { source } from './source.ts'

export const self = signal<Self | undefined>(undefined)
export const rows = signal<readonly RunRow[]>([])
/** Where the next page of the list begins; absent at its end. */
export const before = signal<string | undefined>(undefined)
export const listState = signal<'loading' | 'ready'>('loading')
export const listTrouble = signal<string | undefined>(undefined)

const pageSize = 60
/** The list is read again at most this often while runs change. */
const refreshMs = 1_000
let asked = 0

/** What the list is asked for: the filters of the address. */
export function readQuery(): RunQuery {
  const { status, agent, tool, outcome, reason, session: sessionId, subject, tag, since, until } = route.value
  const { feedbackBy, minScore, maxScore } = route.value
  const texts = {
    ...{ agent, tool, outcome, reason, sessionId, subject, tag },
    ...{ feedbackBy, minScore, maxScore },
  }
  const given = Object.entries(texts).filter(([, text]) => text)
  const statuses = (status ?? '')
    .split(',')
    .filter((each): each is RowStatus => rowStatuses.includes(each as RowStatus))
  return {
    ...Object.fromEntries(given),
    ...(statuses.length > 0 && { status: statuses }),
    ...(since !== undefined && { startedSince: since }),
    ...(until !== undefined && { startedUntil: until }),
    // As the charts, which count child runs as parts of their root.
    ...((since ?? until) !== undefined && { roots: true }),
    limit: pageSize,
  }
}

/** Reads the first page of the list anew. Rows that come after it stay, so that the list does not jump. */
async function refresh(): Promise<void> {
  const mine = ++asked
  try {
    const page = await source.value.listRuns(readQuery())
    if (mine !== asked) return
    const last = page.runs.at(-1)?.runId
    const known = listState.peek() === 'ready' ? rows.peek() : []
    const place = known.findIndex(({ runId }) => runId === last)
    rows.value = [...page.runs, ...(place < 0 ? [] : known.slice(place + 1))]
    if (place < 0 || place === known.length - 1) before.value = page.before
    listTrouble.value = undefined
  } catch (error) {
    if (mine === asked) listTrouble.value = (error as Error).message
  }
  listState.value = 'ready'
}

/** Adds the next page. */
export async function readMore(): Promise<void> {
  const place = before.value
  if (place === undefined) return
  before.value = undefined
  const mine = asked
  try {
    const page = await source.value.listRuns({ ...readQuery(), before: place })
    if (mine !== asked) return
    rows.value = [...rows.value, ...page.runs]
    before.value = page.before
  } catch (error) {
    listTrouble.value = (error as Error).message
  }
}

/** Keeps the list as the filters of the address say, and as runs change. */
export function keepRuns(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let key = ''
  const stopFilters = effect(() => {
    const query = JSON.stringify(readQuery())
    if (query === key) return
    key = query
    listState.value = 'loading'
    void refresh()
  })
  const stopWatch = source.value.watchRuns(() => {
    timer ??= setTimeout(() => {
      timer = undefined
      void refresh()
    }, refreshMs)
  })
  source.value.readSelf().then(
    (read) => (self.value = read),
    (error: Error) => (listTrouble.value = error.message),
  )
  return () => {
    stopFilters()
    stopWatch()
    clearTimeout(timer)
  }
}

/** Whether the caller may send commands of this kind. */
export function may(permission: string): boolean {
  const allowed = self.value?.may
  return allowed === 'everything' || (allowed?.includes(permission) ?? false)
}
