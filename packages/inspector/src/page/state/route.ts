import { computed, type ReadonlySignal, signal } from '@preact/signals'

/** The place that the page shows, as the fragment of its address holds it: a link shows another person the same. */
export interface Route {
  readonly run?: string
  /** The event that is looked at; absent: the last one, as it comes. */
  readonly at?: number
  /** The tabs that are open, by their pane. */
  readonly middle?: string
  readonly right?: string
  /** The call that is looked at. */
  readonly call?: string
  /** The run that this one is compared with. */
  readonly with?: string
  /** Filters of the list. */
  readonly status?: string
  readonly agent?: string
  readonly tool?: string
  readonly outcome?: string
  /** Why runs ended. */
  readonly reason?: string
  readonly session?: string
  readonly subject?: string
  readonly tag?: string
  /** Who gave feedback, and the scores that it has. */
  readonly feedbackBy?: string
  readonly minScore?: string
  readonly maxScore?: string
  /** Words to search for. */
  readonly q?: string
  /** A value within the input of a call, as `order=A-7`. */
  readonly input?: string
  /** Runs that began in this time, its end not included, without child runs; milliseconds since 1970 UTC. */
  readonly since?: number
  readonly until?: number
}

type Names = keyof Route

function parseRoute(fragment: string): Route {
  const { at, since, until, ...texts } = Object.fromEntries(new URLSearchParams(fragment.slice(1)))
  const numbers = Object.entries({ at, since, until }).flatMap(([name, text]) =>
    text !== undefined && /^\d{1,14}$/.test(text) ? [[name, Number(text)]] : [],
  )
  return { ...texts, ...Object.fromEntries(numbers) }
}

function formatRoute(route: Route): string {
  const given = Object.entries(route).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return `#${new URLSearchParams(given)}`
}

const place = signal<Route>(parseRoute(location.hash))
const parts = new Map<string, ReadonlySignal<unknown>>()

function readPart(name: string): unknown {
  const part = parts.get(name) ?? computed(() => place.value[name as Names])
  parts.set(name, part)
  return part.value
}

/**
 * The place that is shown. What reads a part of it is drawn again only when that part changes: a slider that moves over
 * events draws nothing that only asks for the run.
 */
export const route: { readonly value: Route; readonly peek: () => Route } = {
  value: new Proxy({}, { get: (_, name) => readPart(String(name)) }),
  peek: () => place.peek(),
}

addEventListener('hashchange', () => {
  if (formatRoute(place.peek()) !== location.hash) place.value = parseRoute(location.hash)
})

/** The address is written this long after a move within a run: a slider moves more often than a browser lets one write. */
const writeMs = 200
let timer: ReturnType<typeof setTimeout> | undefined

/**
 * Goes to a place. What is left out stays; `undefined` removes it. Places within a run replace each other in the history of
 * the browser, so that Back leads to the run before.
 */
export function go(change: { readonly [Name in Names]?: Route[Name] | undefined }): void {
  const before = place.peek()
  const next = { ...before, ...change } as Route
  const fragment = formatRoute(next)
  if (fragment === formatRoute(before)) return
  const isOtherRun = next.run !== before.run
  if (isOtherRun) writeAddress()
  place.value = next
  if (isOtherRun) history.pushState(null, '', fragment)
  else timer ??= setTimeout(writeAddress, writeMs)
}

function writeAddress(): void {
  if (timer === undefined) return
  clearTimeout(timer)
  timer = undefined
  history.replaceState(null, '', formatRoute(place.peek()))
}

addEventListener('pagehide', writeAddress)

export const runId = computed(() => route.value.run)
