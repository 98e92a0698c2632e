import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../src')
const contrary = new URL('../../cookbook/test/contrary-assert.ts', import.meta.url).href

/** Something that each program prints. */
const printed: Readonly<Record<string, string>> = {
  'exceptions.ts': 'model_failed: authentication, mend it\noutput_invalid: page:',
  'guardrails.ts': 'guardrail: homework: an equation\nanswered: We open at nine.',
  'human-approval.ts': 'maria denied this call: No weather of Japan.',
  'model-input-filter.ts': 'Write to (e-mail)',
  'nested-handoff.ts': 'refunds: The script says: 59 euros are on their way.',
  'run-config.ts': 'A function calls its own name. Kurz gesagt: ja.',
  'server-managed.ts': 'Answer 1. Answer 2. Answer 3.',
  'session-input-callback.ts': 'The script was shown 3 messages.',
}
/** It starts processes of its own file; the others run in this process. */
const inProcesses = 'human-approval.ts'
const programs = Object.keys(printed)

describe('the programs of the OpenAI Agents SDK', () => {
  it('are these, in the README too, and each is at most 70 lines', () => {
    expect(readdirSync(folder).sort()).toEqual(programs)
    const readme = readFileSync(join(folder, '../README.md'), 'utf8')
    for (const program of programs) {
      expect(readme).toContain(`(src/${program})`)
      const lines = readFileSync(join(folder, program), 'utf8').trimEnd().split('\n').length
      expect({ program, short: lines <= 70 }).toEqual({ program, short: true })
    }
  })

  it.each(programs.filter((name) => name !== inProcesses))('%s does what it claims', async (program) => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    await import(join(folder, program))
    expect(log.mock.calls.map((said) => said.join(' ')).join('\n')).toContain(printed[program])
  })

  it('human-approval.ts asks in one process, and decides in another', async () => {
    const { stdout } = await run(process.execPath, [join(folder, inProcesses)])
    expect(stdout).toContain(printed[inProcesses])
  })

  it.concurrent.each(programs)('%s exits with an error when a claim does not hold', async (program) => {
    const failing = run(process.execPath, ['--import', contrary, join(folder, program)])
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('AssertionError'),
    })
  })
})
