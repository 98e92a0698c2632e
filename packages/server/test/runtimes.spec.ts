import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { bundleProgram } from '../../../scripts/testing/bundle-program.ts'
import { answerOf, framesOf } from './kit/office.ts'
import { findRuntime } from './kit/runtimes/found-runtimes.ts'
import { workerdConfig } from './kit/runtimes/workerd-config.ts'

const json = { authorization: 'Bearer boss', 'content-type': 'application/json' }

/** The events of a run, live, after one of them. */
async function* eventsOf(
  url: string,
  after: string | undefined,
): AsyncGenerator<RuntimeEvent & { id: string }> {
  const headers = { ...json, accept: 'text/event-stream', ...(after && { 'last-event-id': after }) }
  for await (const { id = '', data } of framesOf(await fetch(`${url}/events`, { headers })))
    yield { ...(JSON.parse(data) as RuntimeEvent), id }
}

interface Mounted {
  /** What is bundled, from `kit/runtimes`. */
  readonly program: string
  readonly args: readonly string[]
}

/** How a runtime serves a module; each says on stdout where it listens. */
const runtimes: Readonly<Record<string, Mounted>> = {
  bun: { program: 'mounted', args: ['mounted.js'] },
  deno: {
    program: 'mounted',
    args: ['serve', '--no-config', '--host=127.0.0.1', '--port=0', '--allow-net', 'mounted.js'],
  },
  workerd: { program: 'worker', args: ['serve', 'config.capnp', '--control-fd=1'] },
}

/** Serves a program by a runtime, and returns where it listens. */
async function served(path: string, { program, args }: Mounted): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-runtime-'))
  await bundleProgram(join(import.meta.dirname, `kit/runtimes/${program}.ts`), join(folder, `${program}.js`))
  writeFileSync(join(folder, 'config.capnp'), workerdConfig)
  const child = spawn(path, args, { cwd: folder, env: { ...process.env, DENO_DIR: folder, NO_COLOR: '1' } })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill()
    await ended
    rmSync(folder, { recursive: true })
  })
  let said = ''
  return await new Promise((resolve, reject) => {
    const hear = (text: Buffer): void => {
      said += text.toString()
      const port = /127\.0\.0\.1:(\d+)|"port":(\d+)/.exec(said)
      if (port) resolve(`http://127.0.0.1:${port[1] ?? port[2]}`)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', () => reject(new Error(`${path} ended: ${said}`)))
  })
}

describe.each(Object.entries(runtimes))('a server in %s', (name, mounted) => {
  const path = findRuntime(name)

  // Needs the runtime. Where this machine has none, the line of findRuntime says how to install it.
  it.skipIf(path === undefined)(
    'starts a run, streams it, decides, continues a stream, and refuses',
    async () => {
      const url = await served(path ?? '', mounted)
      const post = (at: string, body: unknown, headers: object = json): Promise<Response> =>
        fetch(`${url}${at}`, { method: 'POST', body: JSON.stringify(body), headers: { ...headers } })

      const started = await post('/runs', { agent: 'office', input: 'Pay the bill.' })
      const { runId } = await answerOf(started)
      expect(started.headers.get('location')).toBe(`/runs/${String(runId)}`)
      const run = `${url}/runs/${String(runId)}`
      const [first, rest]: RuntimeEvent[][] = [[], []]
      let last: string | undefined
      for await (const event of eventsOf(run, undefined)) {
        first!.push(event)
        last = event.id
        if (event.type === 'approval_requested') break
      }
      const toolCallId = first!.at(-1)?.toolCallId
      const following = Array.fromAsync(eventsOf(run, last))
      expect((await post(`/runs/${String(runId)}/approve`, { toolCallId })).status).toBe(200)
      rest!.push(...(await following))
      const seqs = [...first!, ...rest!].map(({ seq }) => seq)
      expect(seqs).toEqual(seqs.map((_, index) => index + 1))
      expect(rest!.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
      const result = await fetch(`${run}/result`, { headers: json })
      expect(await result.json()).toMatchObject({ status: 'done', text: 'Payment: 5 USD paid' })

      const stranger = await post(
        '/runs',
        { agent: 'office', input: 'Pay.' },
        { 'content-type': 'application/json' },
      )
      expect(stranger.headers.get('content-type')).toBe('application/problem+json')
      expect(await answerOf(stranger)).toMatchObject({ status: 401 })
      expect(await answerOf(await post('/runs', { agent: 'none', input: 'Pay.' }))).toMatchObject({
        status: 404,
      })
      const page = await fetch(`${url}/inspector`, { headers: json })
      expect(await page.text()).toMatch(/^<!doctype html>.*<\/html>\s*$/is)
      const crossing = { ...json, origin: 'https://evil.example' }
      expect(await answerOf(await post('/runs', {}, crossing))).toMatchObject({ status: 403 })
    },
  )
})
