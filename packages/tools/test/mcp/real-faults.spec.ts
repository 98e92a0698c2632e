// Servers that others wrote, and what goes wrong with them: cancels, kills in a call, and starts after it.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import type { McpManager } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { connect, isAlive, tick } from './connected.ts'
import { restartedEverything } from './servers/http-servers.ts'
import { realServer } from './servers/real-servers.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

const quickly = { reconnect: { baseMs: 1, capMs: 5 } }
const long = { duration: 600, steps: 20_000 }

/** The processes that this one started and whose command holds a text. */
function processesWith(text: string): readonly number[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='])
    .toString()
    .split('\n')
    .map((line) => line.trim().split(/ +/))
    .filter(([, parent, ...args]) => Number(parent) === process.pid && args.join(' ').includes(text))
    .map(([pid]) => Number(pid))
}

/** Begins a call that lasts, and resolves once it has made progress. */
async function lastingCall(
  manager: McpManager,
  signal?: AbortSignal,
): Promise<{ readonly ended: Promise<unknown> }> {
  const received: Json[] = []
  const onProgress = (data: Json): void => void received.push(data)
  const call = manager.call('everything', 'trigger-long-running-operation', long, {
    onProgress,
    ...(signal && { signal }),
  })
  const ended = call.then(
    () => 'answered',
    (error: unknown) => error,
  )
  while (received.length === 0) await tick()
  expect(received[0]).toMatchObject({ progress: 1, total: 20_000 })
  return { ended }
}

const sum = async (manager: McpManager): Promise<string> =>
  joinText(await manager.call('everything', 'get-sum', { a: 20, b: 22 }))

describe('a server that others wrote, as a process', () => {
  it('hears of a cancel, and answers the next call', async () => {
    const manager = await connect({ everything: realServer('everything') })
    const abort = new AbortController()
    const { ended } = await lastingCall(manager, abort.signal)
    abort.abort(new Error('enough'))
    expect(await ended).toMatchObject({ message: 'enough' })
    expect(await sum(manager)).toBe('The sum of 20 and 22 is 42.')
  })

  it('that is killed in a call leaves that in doubt, and is started again for the next one', async () => {
    const before = processesWith('server-everything')
    const manager = await connect({ everything: realServer('everything') }, quickly)
    const [pid = 0] = processesWith('server-everything').filter((each) => !before.includes(each))
    const { ended } = await lastingCall(manager)
    process.kill(pid, 'SIGKILL')
    expect(await ended).toMatchObject({
      outcome: 'interrupted',
      message: expect.stringContaining('It may have taken effect') as string,
    })
    expect(await sum(manager)).toBe('The sum of 20 and 22 is 42.')
    const [again = 0] = processesWith('server-everything').filter((each) => !before.includes(each))
    expect([isAlive(pid), isAlive(again)]).toEqual([false, true])
    await manager.close()
    expect(isAlive(again)).toBe(false)
  })

  it('finds after a kill what it had kept', async () => {
    const folder = temporaryFolder()
    const before = processesWith('server-memory')
    const env = { MEMORY_FILE_PATH: join(folder, 'memory.json') }
    const manager = await connect({ memory: realServer('memory', [], { env }) }, quickly)
    const entities = [{ name: 'Lamp', entityType: 'thing', observations: ['is broken'] }]
    await manager.call('memory', 'create_entities', { entities })
    for (const pid of processesWith('server-memory')) if (!before.includes(pid)) process.kill(pid, 'SIGKILL')
    // It may not be known yet that the process is gone: then the call is in doubt, and is made once more.
    const read = (): Promise<string> => manager.call('memory', 'read_graph', {}).then(joinText)
    expect(await read().catch(read)).toContain('is broken')
  })

  it('thinks step by step', async () => {
    const manager = await connect({ thinking: realServer('sequential-thinking') })
    const thought = { thought: 'First.', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }
    const answer = await manager.call('thinking', 'sequentialthinking', thought)
    expect(JSON.parse(joinText(answer))).toMatchObject({ thoughtNumber: 1, totalThoughts: 2 })
  })
})

describe('a task of a server that others wrote', () => {
  it('reports its states, asks the user, and ends in a run', async () => {
    const manager = await connect(
      { everything: realServer('everything') },
      { elicit: () => ({ action: 'accept', content: { interpretation: 'historical' } }) },
    )
    const input = { topic: 'lamps', ambiguous: true }
    const model = scriptedModel([
      { toolCalls: [{ name: 'mcp__everything__simulate-research-query', input }] },
      { text: 'Done.' },
    ])
    const agent = defineAgent({ name: 'reader', instructions: 'Read.', model, tools: manager.tools })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Research lamps.')
    const events = []
    for await (const event of run) events.push(event)
    expect(checkLaws(events)).toEqual([])
    const result = events.find((event) => event.type === 'tool_result')
    expect(result).toMatchObject({ outcome: 'success' })
    expect(JSON.stringify(result)).toContain('lamps (historical)')
    const states = events.flatMap((event) => (event.type === 'tool_progress' ? [event.data] : []))
    expect(states).toContainEqual({ status: 'working', message: 'Gathering sources...' })
  })

  it('is gone with a server that is killed: the call is in doubt', async () => {
    const before = processesWith('server-everything')
    const manager = await connect({ everything: realServer('everything') }, quickly)
    const heard: Json[] = []
    const onProgress = (data: Json): void => void heard.push(data)
    const input = { topic: 'lamps' }
    const call = manager
      .call('everything', 'simulate-research-query', input, { onProgress })
      .catch((error: unknown) => error)
    while (heard.length === 0) await tick()
    for (const pid of processesWith('server-everything')) {
      if (!before.includes(pid)) process.kill(pid, 'SIGKILL')
    }
    expect(await call).toMatchObject({ outcome: 'interrupted' })
  })
})

describe('a server that others wrote, over HTTP', () => {
  it('hears of a cancel; killed in a call it leaves that in doubt, and works again once it is back', async () => {
    const server = await restartedEverything()
    const manager = await connect({ everything: { url: server.url } }, quickly)
    const abort = new AbortController()
    const cancelled = await lastingCall(manager, abort.signal)
    abort.abort(new Error('enough'))
    expect(await cancelled.ended).toMatchObject({ message: 'enough' })
    const { ended } = await lastingCall(manager)
    await server.kill()
    expect(await ended).toMatchObject({ outcome: 'interrupted' })
    await expect(sum(manager)).rejects.toThrow(/cannot be reached now|It may have taken effect/)
    await server.start()
    expect(await sum(manager).catch(() => sum(manager))).toBe('The sum of 20 and 22 is 42.')
  })
})
