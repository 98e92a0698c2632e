// The laws hold for runs that use files and programs, whenever they are cancelled, and nothing is left of a run.
import { createRuntime, defineAgent, type Ledger, memoryLedger, type Tool } from '@tallystick/core'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { shell } from '@tallystick/tools/shell'
import { tries } from '../../../../scripts/testing/effort.ts'
import { openFiles, pictureOf, sandbox, type Sandbox, toolsOver } from './files/sandbox.ts'
import { handlesClosed, startedProcesses } from './shell/sandbox-shell.ts'

interface PlannedCall {
  readonly name: string
  readonly input: JsonObject
  /** It ends only by a cancel. */
  readonly hangs?: boolean
}

const file = fc.constantFrom('a.txt', 'sub/b.txt', 'sub', '../outside/a.txt', '.env', 'none')
const script = fc.constantFrom(
  'echo done; exit 3',
  'sleep 1000 & echo $!',
  'cat; echo x > made.txt; kill $$',
  'exec 1>&- 2>&-',
)
const hanging = fc.constantFrom('sleep 1000', 'trap "" TERM; while :; do sleep 0.01; done', 'yes')
const call: fc.Arbitrary<PlannedCall> = fc.oneof(
  { weight: 2, arbitrary: file.map((path) => ({ name: 'read_file', input: { path } })) },
  fc.constant({ name: 'search_files', input: { text: 'own' } }),
  file.map((path) => ({ name: 'write_file', input: { path, content: 'own again' } })),
  file.map((path) => ({ name: 'edit_file', input: { path, oldText: 'own', newText: 'my own' } })),
  fc.tuple(file, file).map(([from, to]) => ({ name: 'move_file', input: { from, to } })),
  fc.constant({ name: 'read_file', input: { path: 7 } }),
  script.map((text) => ({ name: 'shell', input: { program: 'sh', args: ['-c', text], stdin: 'given' } })),
  hanging.map((text) => ({ name: 'shell', input: { program: 'sh', args: ['-c', text] }, hangs: true })),
  fc.constant({ name: 'shell', input: { program: 'rm', args: ['-rf', '.'] } }),
)
interface Plan {
  readonly turns: readonly (readonly PlannedCall[])[]
  readonly delay: number
  readonly cancelled: number
}

const plan: fc.Arbitrary<Plan> = fc.record({
  turns: fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
  /** Turns of the event loop that a cancel waits after a call has started. */
  delay: fc.nat(12),
  /** The start that is followed by a cancel. */
  cancelled: fc.nat(7),
})

/** A ledger that notes which calls were announced: durably, where they do more than read. */
function notingStarts(ledger: Ledger): { readonly ledger: Ledger; readonly starts: ReadonlySet<string> } {
  const starts = new Set<string>()
  const append: Ledger['append'] = async (runId, expected, events, options) => {
    const appended = await ledger.append(runId, expected, events, options)
    for (const event of events) {
      if (event.type !== 'tool_started') continue
      if (event.effect === 'read' || options.durability === 'barrier') starts.add(event.toolCallId)
    }
    return appended
  }
  return { ledger: { ...ledger, append }, starts }
}

async function play(box: Sandbox, { turns, delay, cancelled }: Plan) {
  const { ledger, starts } = notingStarts(memoryLedger())
  const early: string[] = []
  const watched = (tool: Tool): Tool => ({
    ...tool,
    run(given) {
      if (!starts.has(given.toolCallId)) early.push(given.toolCallId)
      return tool.run(given)
    },
  })
  const programs = { sh: {}, cat: { read: true } }
  const tools = [...toolsOver(box), shell({ root: box.root, programs, approval: 'never', graceMs: 20 })].map(
    watched,
  )
  const model = scriptedModel([
    ...turns.map((calls) => ({ toolCalls: calls.map(({ name, input }) => ({ name, input })) })),
    { text: 'Done.' },
  ])
  const agent = defineAgent({ name: 'worker', instructions: 'Work.', model, tools })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
  const events = []
  let started = 0
  for await (const event of run) {
    events.push(event)
    if (event.type !== 'tool_started') continue
    if (started++ === cancelled) {
      for (let turn = 0; turn < delay; turn++) await new Promise((resolve) => setImmediate(resolve))
      run.cancel('enough').catch(() => {})
    }
  }
  return { events, early, result: await run.result }
}

it('a run that uses files and programs keeps the laws, and leaves nothing, whenever it is cancelled', async () => {
  const holds = fc.asyncProperty(plan, async (planned) => {
    const box = sandbox()
    try {
      box.put({ 'a.txt': 'own', 'sub/b.txt': 'own', '.env': 'KEY' })
      const [outside, files] = [pictureOf(box.outside), openFiles()]
      const hangs = planned.turns.flat().some(({ hangs: does = false }) => does)
      const { events, early, result } = await play(box, hangs ? { ...planned, cancelled: 0 } : planned)
      expect(checkLaws(events)).toEqual([])
      expect(early).toEqual([])
      expect(result.status).toBe('done')
      expect(events.at(-1)?.type).toBe('run_finished')
      await handlesClosed()
      // After a cancel a call may end later than its run, and does end.
      while (startedProcesses() > 0) await new Promise((resolve) => setImmediate(resolve))
      await handlesClosed()
      expect(openFiles()).toBeLessThanOrEqual(files)
      expect(pictureOf(box.outside)).toEqual(outside)
      expect(pictureOf(box.folder).filter((line) => line.includes('.tallystick-'))).toEqual([])
    } finally {
      box.remove()
    }
  })
  await fc.assert(holds, { numRuns: tries(150) })
})
