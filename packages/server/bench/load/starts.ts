import { Agent, request } from 'node:http'
import type { Place } from './serving.ts'

/** A start that was acknowledged: its key, its run, and how long that took. */
export interface Started {
  readonly key: string
  readonly runId: string
  readonly ms: number
}

const agent = new Agent({ keepAlive: true, maxSockets: 200 })

/** Starts a run that tells so many words, once, however often it has to ask. Rejects if it is refused. */
async function startRun(place: () => Place, key: string, words: number): Promise<Started> {
  const begun = performance.now()
  for (;;) {
    try {
      const { status, text } = await post(place(), key, words)
      if (status === 201) {
        const { runId } = JSON.parse(text) as { runId: string }
        return { key, runId, ms: performance.now() - begun }
      }
      // The process that drives the runs of the file is not yet gone for the one that takes over.
      if (status !== 503 && status !== 408) throw new Error(`A start was answered with ${status}: ${text}`)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error
    }
    await new Promise((resolve) => void setTimeout(resolve, 50))
  }
}

function post(
  { url, headers }: Place,
  key: string,
  words: number,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const options = { agent, method: 'POST', headers: { ...headers, 'idempotency-key': key } }
    const sent = request(`${url}/runs`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', reject)
    })
    sent.on('error', reject).end(JSON.stringify({ agent: 'teller', input: String(words) }))
  })
}

/** Starts runs at once, each under a key of its own. */
export function startMany(
  place: () => Place,
  { name, count, words }: { readonly name: string; readonly count: number; readonly words: number },
): Promise<readonly Started[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => startRun(place, `${name}-${index}`, words)))
}

/** Starts runs at a rate, whether or not the ones before are acknowledged. Resolves when the last one is. */
export async function startAtRate(
  place: () => Place,
  { perSecond, count, words }: { readonly perSecond: number; readonly count: number; readonly words: number },
): Promise<readonly Started[]> {
  const starts: Promise<Started>[] = []
  const begun = performance.now()
  while (starts.length < count) {
    const due = Math.min(count, Math.ceil(((performance.now() - begun) / 1_000) * perSecond))
    while (starts.length < due) starts.push(startRun(place, `start-${starts.length}`, words))
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
  return await Promise.all(starts)
}
