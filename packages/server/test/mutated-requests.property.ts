import { connect } from 'node:net'
import { once } from 'node:events'
import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { findUnclearWords, mutatedBytes } from '../../../scripts/testing/mutated.ts'
import { documentAt, exampleOf, operationsOf } from './kit/described.ts'
import { openOffice, type Office } from './kit/office.ts'
import { temporaryLedger } from './kit/temporary-ledger.ts'

/** An agent that asks whether it may pay, in each of its runs. */
function cashier(): Agent {
  const model = scriptedModel(
    Array.from(
      { length: 99_999 },
      () =>
        ({ messages }) =>
          messages.at(-1)?.role === 'tool'
            ? { text: 'Paid.' }
            : { toolCalls: [{ name: 'pay', input: { usd: 5 } }] },
    ),
  )
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  return defineAgent({ name: 'cashier', instructions: 'Pay.', model, tools: [pay] })
}

/** What a raw connection is answered until it is closed. */
async function answersTo(office: Office, request: Uint8Array): Promise<string> {
  const socket = connect(office.listening.port, '127.0.0.1')
  let text = ''
  socket.on('data', (data) => (text += data.toString('latin1')))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.end(request)
  await closed
  return text
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const head = 'host: 127.0.0.1\r\nauthorization: Bearer boss\r\nconnection: close\r\n'
const upgrade =
  'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

function writePost(target: string, body: Uint8Array): Uint8Array {
  const line = `POST ${target} HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  return Buffer.concat([encode(line), body])
}

/** Where a run, its call and what else an operation names stand in a request until it is sent. */
const places = { run: '00000000-0000-7000-8000-000000000000', call: 'call_of_the_run' }
const names: Readonly<Record<string, string>> = {
  ...{ run: places.run, agent: 'cashier', session: 'chat-0', chat: 'chat-0', model: 'cashier' },
}

const described = operationsOf(await documentAt('')).map(({ path, ...each }) => ({
  ...each,
  place: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? ''),
}))
const posts = described.flatMap(({ place, operation }) => {
  const example = exampleOf(operation)
  if (example === undefined) return []
  const about = { ...example, ...('toolCallId' in example && { toolCallId: places.call }) }
  return [{ target: place, body: encode(JSON.stringify(about)) }]
})
const gets = described
  .filter(({ method }) => method === 'get')
  .flatMap(({ place, operation }) => {
    const queries = operation.parameters.filter((each) => each.in === 'query')
    return [place, ...queries.map(({ name }) => `${place}?${name}=5`)]
  })
const whole = [
  ...posts.map(({ target, body }) => writePost(target, body)),
  ...gets.map((target) => encode(`GET ${target} HTTP/1.1\r\n${head}last-event-id: 3\r\n\r\n`)),
  encode(`GET /runs HTTP/1.1\r\n${head}${upgrade}\r\n`),
]

/** Requests in which something is wrong: anywhere, or in the body, or in the target alone, so that a route gets them. */
const request = fc.oneof(
  mutatedBytes(whole),
  fc
    .constantFrom(...posts)
    .chain(({ target, body }) => mutatedBytes([body]).map((changed) => writePost(target, changed))),
  mutatedBytes(gets.map(encode)).map((target) =>
    Buffer.concat([encode('GET '), target, encode(` HTTP/1.1\r\n${head}\r\n`)]),
  ),
)

function replaceBytes(bytes: Uint8Array, from: string, to: string): Uint8Array {
  return Buffer.from(Buffer.from(bytes).toString('latin1').replaceAll(from, to), 'latin1')
}

it('a request in which something is wrong is no fault of the server, which serves on', async () => {
  const office = await openOffice({ agents: [cashier()], ledger: temporaryLedger(), inspector: true })
  await fc.assert(
    fc.asyncProperty(request, async (bytes) => {
      const runId = await office.start('boss')
      const result = await office.send(`/runs/${runId}/result?waitMs=20000`)
      const { pendingApprovals } = (await result.json()) as {
        pendingApprovals: readonly { readonly toolCallId: string }[]
      }
      const about = replaceBytes(bytes, places.run, runId)
      const answers = await answersTo(
        office,
        replaceBytes(about, places.call, pendingApprovals[0]?.toolCallId ?? ''),
      )
      const statuses = [...answers.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))
      expect(statuses.filter((status) => status >= 500)).toEqual([])
      const isRefused = statuses.some((status) => status >= 400)
      expect(isRefused ? findUnclearWords(answers) : undefined).toBe(undefined)
      expect(office.reported).toEqual([])
    }),
    { numRuns: tries(1_500) },
  )
  expect((await office.send('/agents')).status).toBe(200)
})
