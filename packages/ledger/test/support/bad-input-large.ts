import { createReadStream, createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createRuntime, defineAgent, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { exportEvents, foldTo, importEvents, splitLines, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

/** How long a step took, and the most memory that the process has taken by then. */
export interface StepFigures {
  readonly step: string
  readonly ms: number
  readonly maxMebibytes: number
}

/** Takes a tool result of so many bytes through a whole run in a file, and moves it to another. Throws where it changes. */
export async function takeLargeResult(bytes: number, tell: (figures: StepFigures) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-large-'))
  const measured = async <T>(step: string, work: () => Promise<T>): Promise<T> => {
    const begun = performance.now()
    const result = await work()
    const maxMebibytes = Math.round(process.resourceUsage().maxRSS / 1024)
    tell({ step, ms: Math.round(performance.now() - begun), maxMebibytes })
    return result
  }
  try {
    const [ledger, other] = [sqliteLedger(join(folder, 'a.db')), sqliteLedger(join(folder, 'b.db'))]
    const text = '0123456789'.repeat(bytes / 10)
    const dump = testTool({ name: 'dump', run: () => text })
    const model = scriptedModel([{ toolCalls: [{ name: 'dump', input: {} }] }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, tools: [dump] })
    const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
    const file = join(folder, 'export.jsonl')
    const requireText = async (from: Ledger): Promise<void> => {
      for await (const event of from.find({ runId: run.id, types: ['tool_result'] })) {
        const [part] = event.type === 'tool_result' ? event.content : []
        if (part?.type !== 'text' || part.text !== text) throw new Error('The result is another one.')
      }
    }
    await measured('run', () => run.result)
    await measured('read', () => requireText(ledger))
    await measured('fold', () => foldTo(ledger, run.id))
    await measured('verify', () => requireSound(ledger))
    await measured('export', () =>
      pipeline(Readable.from(endingIn(exportEvents(ledger))), createWriteStream(file)),
    )
    await measured('import', () => importEvents(other, splitLines(createReadStream(file))))
    await measured('read what was imported', () => requireText(other))
    await measured('verify what was imported', () => requireSound(other))
    for (const each of [ledger, other]) await each.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function* endingIn(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`
}

async function requireSound(ledger: Ledger): Promise<void> {
  for await (const verdict of verifyLedger(ledger)) {
    if (!verdict.ok) throw new Error(`The ledger is not sound: ${JSON.stringify(verdict)}`)
  }
}
