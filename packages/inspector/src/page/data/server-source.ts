import type { RunPage, RunQuery, Self } from '../../api.ts'
import type { RunOrigin } from '../worker/run-origin.ts'
import { type Source, SourceError } from './source.ts'

/** The stream of all events begins with the first one of the ledger, so the list is read again instead, while it is seen. */
const lookAgainMs = 2_000

/** The path of a list of runs, of a search in them or of their cases, relative to the page's. */
export function formatListPath(
  query: RunQuery & { readonly input?: string; readonly after?: string; readonly run?: readonly string[] },
  path: 'runs' | 'search' | 'dataset' = 'runs',
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? (value as readonly unknown[]) : [value])
      if (each !== undefined && each !== '') search.append(name, String(each))
  return `${path}?${search}`
}

/** Reads the routes of the server that the page comes from. */
export class ServerSource implements Source {
  readonly kind = 'server'
  readonly #base = new URL('./', location.href).href
  /** Lists that are being read, and until when a slow one is not read again: it may cost the server much. */
  #listing = 0
  #restUntil = 0

  readSelf(): Promise<Self> {
    return this.read('inspector/self')
  }

  async listRuns(query: RunQuery): Promise<RunPage> {
    const from = performance.now()
    this.#listing++
    try {
      return await this.#ask(formatListPath(query))
    } finally {
      this.#listing--
      const now = performance.now()
      this.#restUntil = now + (now - from) * 10
    }
  }

  locateRun(runId: string): RunOrigin {
    return { kind: 'server', url: `${this.#base}runs/${runId}/events` }
  }

  watchRuns(onChange: () => void): () => void {
    const timer = setInterval(() => {
      const isRested = this.#listing === 0 && performance.now() >= this.#restUntil
      if (isRested && document.visibilityState === 'visible') onChange()
    }, lookAgainMs)
    return () => clearInterval(timer)
  }

  read<Answer>(path: string, query: Readonly<Record<string, string | number>> = {}): Promise<Answer> {
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
    return this.#ask(search.size > 0 ? `${path}?${search}` : path)
  }

  send<Answer>(path: string, body: object): Promise<Answer> {
    // What it changes is to be seen soon, however slow the last list was.
    this.#restUntil = 0
    const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
    return this.#ask(path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  async #ask<Answer>(path: string, init: RequestInit = {}): Promise<Answer> {
    let response: Response
    try {
      response = await fetch(this.#base + path, { ...init, credentials: 'same-origin' })
    } catch {
      throw new SourceError('The server does not answer. Is its process still running?')
    }
    const text = await response.text()
    if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as Answer
    throw new SourceError(readDetail(text) ?? `The server answered ${response.status} to ${path}.`)
  }
}

function readDetail(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly detail?: string }).detail
  } catch {
    return undefined
  }
}
