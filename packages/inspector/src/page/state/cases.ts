import { signal } from '@preact/signals'
import type { CasePage, RunQuery } from '../../api.ts'
import { formatListPath } from '../data/server-source.ts'
import { may } from './runs.ts'
import { source } from './source.ts'

/** The runs of the list that are ticked for a data set; `undefined` while none is made. */
export const ticked = signal<ReadonlySet<string> | undefined>(undefined)

export function tick(runId: string): void {
  const next = new Set(ticked.peek())
  if (!next.delete(runId)) next.add(runId)
  ticked.value = next
}

/** What cases are made of: the runs `run`, or those that the filters let through. */
export type Choice = RunQuery & { readonly run?: readonly string[] }

/** Cases are kept in memory until they are saved, so there are not more. */
export const maxCases = 10_000
const pageSize = 50

export function mayCollect(): boolean {
  return source.value.kind === 'server' && may('inspect')
}

/** Reads cases page by page, until `isEnough` says so. */
export async function collectCases(
  { run, ...query }: Choice,
  onPage: (page: CasePage) => void,
  isEnough: () => boolean,
): Promise<void> {
  const read = (part: Choice): Promise<CasePage> => source.peek().read(formatListPath(part, 'dataset'))
  if (run) {
    for (let from = 0; from < run.length && !isEnough();) {
      const page = await read({ run: run.slice(from, from + pageSize) })
      onPage(page)
      from = page.before === undefined ? from + pageSize : run.indexOf(page.before) + 1
    }
    return
  }
  let before: string | undefined
  do {
    const page = await read({ ...query, limit: pageSize, ...(before !== undefined && { before }) })
    onPage(page)
    before = page.before
  } while (before !== undefined && !isEnough())
}
