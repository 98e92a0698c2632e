import { effect, signal } from '@preact/signals'
import type { Hit, RunQuery } from '../../api.ts'
import { formatListPath } from '../data/server-source.ts'
import { route } from './route.ts'
import { readQuery } from './runs.ts'
import { source } from './source.ts'

/** Events that the search of the address found; `undefined` while nothing is searched for. */
export const hits = signal<readonly Hit[] | undefined>(undefined)
/** Where the search goes on; absent at its end. */
export const hitsAfter = signal<string | undefined>(undefined)
export const isSearching = signal(false)
export const searchTrouble = signal<string | undefined>(undefined)

interface HitPage {
  readonly hits: readonly Hit[]
  readonly after?: string
}

/** One types a word within this time. */
const typingMs = 250
let asked = 0

type Search = RunQuery & { readonly input?: string }

/** What is searched for, in the runs that the filters let through; `undefined` without words and without a value of an input. */
function readSearch(): Search | undefined {
  const { q, input } = route.value
  if (!q && !input) return undefined
  return { ...readQuery(), ...(q && { q }), ...(input && { input }) }
}

/** Searches for what the address asks for, whenever that changes. */
export function keepSearch(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let key = ''
  const stop = effect(() => {
    const search = readSearch()
    const next = JSON.stringify(search ?? null)
    if (next === key) return
    key = next
    asked++
    clearTimeout(timer)
    if (search === undefined) {
      hits.value = undefined
      isSearching.value = false
      searchTrouble.value = undefined
      return
    }
    isSearching.value = true
    timer = setTimeout(() => void findPage(search), hits.peek() === undefined ? 0 : typingMs)
  })
  return () => {
    stop()
    clearTimeout(timer)
  }
}

async function findPage(search: Search, after?: string): Promise<void> {
  const mine = asked
  try {
    const page = await source
      .peek()
      .read<HitPage>(formatListPath({ ...search, limit: 50, ...(after && { after }) }, 'search'))
    if (mine !== asked) return
    hits.value = after === undefined ? page.hits : [...(hits.peek() ?? []), ...page.hits]
    hitsAfter.value = page.after
    searchTrouble.value = undefined
  } catch (error) {
    if (mine !== asked) return
    hits.value ??= []
    searchTrouble.value = (error as Error).message
  }
  isSearching.value = false
}

/** Adds the next page of what was found. */
export async function findMore(): Promise<void> {
  const after = hitsAfter.peek()
  const search = readSearch()
  if (after === undefined || search === undefined || isSearching.peek()) return
  hitsAfter.value = undefined
  isSearching.value = true
  await findPage(search, after)
}
