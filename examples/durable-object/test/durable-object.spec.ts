import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, type Rest } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import * as z from 'zod'

/** What the test uses of miniflare, which no `pnpm install` brings. */
interface Miniflare {
  dispatchFetch(url: string, request: RequestInit): Promise<Response>
  dispose(): Promise<void>
}

const repository = join(import.meta.dirname, '../../..')
const runtimes = join(repository, '.runtimes')
const isThere = existsSync(join(runtimes, 'node_modules/miniflare'))
if (!isThere && process.env['TALLYSTICK_ENGINES'] !== 'all') {
  console.warn(
    'The test of the Durable Object is left out: npm install --prefix .runtimes miniflare@4.20260426.0',
  )
}
const scriptPath = join(import.meta.dirname, '../src/worker.js')

/** Serves `POST /drive`, as a service with the ledger does, and refuses the first request. */
async function serve(drive: (runId: string) => Promise<Rest>): Promise<string> {
  let calls = 0
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const { runId } = (await json(request)) as { readonly runId: string }
      const isRefused = ++calls === 1 || request.headers.authorization !== 'Bearer secret'
      response.statusCode = isRefused ? 503 : 200
      response.end(isRefused ? '' : JSON.stringify(await drive(runId)))
    }
    void answer()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function startObjects(service: string): Miniflare {
  const load = createRequire(join(runtimes, 'package.json'))
  const { Miniflare: Host } = load('miniflare') as { readonly Miniflare: new (options: object) => Miniflare }
  const host = new Host({
    modules: [{ type: 'ESModule', path: scriptPath }],
    compatibilityDate: '2026-04-01',
    durableObjects: { RUNS: 'RunAlarm' },
    bindings: { SERVICE: service, SECRET: 'secret', RETRY_MS: 20 },
  })
  onTestFinished(() => host.dispose())
  return host
}

describe.skipIf(!isThere && process.env['TALLYSTICK_ENGINES'] !== 'all')(
  'a Durable Object for each run',
  () => {
    it('drives a run by its alarm, whenever it is woken, and tries again what the service refuses', async () => {
      const pay = defineTool({
        name: 'pay',
        description: 'Pays the bill.',
        input: z.object({}),
        effect: 'write',
        approval: 'always',
        execute: () => 'Paid.',
      })
      const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'It is paid.' }])
      const cashier = defineAgent({ name: 'cashier', instructions: 'Pay bills.', model, tools: [pay] })
      const ledger = memoryLedger()
      const runtime = createRuntime({ ledger, agents: [cashier] })
      const rests: Rest[] = []
      const service = await serve(async (runId) => {
        const rest = await runtime.drive(runId, { maxMs: 20_000 })
        rests.push(rest)
        return rest
      })
      const objects = startObjects(service)
      const wake = async (runId: string, secret = 'secret'): Promise<number> => {
        const headers = { authorization: `Bearer ${secret}` }
        const body = JSON.stringify({ runId })
        return (await objects.dispatchFetch('http://localhost/wake', { method: 'POST', headers, body }))
          .status
      }
      const statuses = (): readonly string[] => rests.map(({ status }) => status)

      const runId = await runtime.enqueue(cashier, 'Pay the bill.')
      expect(await wake(runId, 'guess')).toBe(401)
      expect(await wake(runId)).toBe(202)
      await vi.waitUntil(() => rests.length === 1, { timeout: 60_000 })
      const [question] = (await runtime.resume(runId).result).pendingApprovals
      if (!question) throw new Error('Nobody was asked.')
      await runtime.post(
        runId,
        { type: 'approve', toolCallId: question.toolCallId, by: 'ada' },
        { key: 'click' },
      )
      await wake(runId)
      await vi.waitUntil(() => rests.length === 2, { timeout: 60_000 })
      expect(statuses()).toEqual(['waiting', 'done'])
    })
  },
)

it('is the class that the page shows', () => {
  const [, shown] =
    /```ts sketch\n(.*?)^```/ms.exec(readFileSync(join(repository, 'docs/serverless.md'), 'utf8')) ?? []
  const [own = ''] = readFileSync(scriptPath, 'utf8').split('\n/** For services')
  expect(own.trim()).toBe(shown?.trim())
})
