import { createInterface } from 'node:readline/promises'
import type { PendingApproval } from '@tallystick/core'
import type { ApprovalChoice } from './drive-run.ts'
import { oneLine } from './view/content-text.ts'

const inputCharactersMax = 400

/** Asks the person at the terminal about a call that waits. Whoever leaves (Ctrl-C, Ctrl-D) decides later. */
export async function askForApproval({ name, input, reason }: PendingApproval): Promise<ApprovalChoice> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const left = new AbortController()
  terminal.once('close', () => left.abort())
  terminal.once('SIGINT', () => terminal.close())
  const ask = (question: string): Promise<string> => terminal.question(question, { signal: left.signal })
  try {
    const because = reason === undefined ? '' : ` (${reason})`
    const question = `\nRun ${name} with ${oneLine(JSON.stringify(input), inputCharactersMax)}?${because} [y]es, [n]o, [l]ater: `
    for (;;) {
      const answer = (await ask(question)).trim().toLowerCase()
      if (answer === 'y' || answer === 'yes') return { kind: 'approve' }
      if (answer === 'l' || answer === 'later') return { kind: 'later' }
      if (answer !== 'n' && answer !== 'no') continue
      const given = (await ask('Why not? The model reads it: ')).trim()
      return { kind: 'deny', reason: given || 'No reason was given.' }
    }
  } catch (error) {
    if (left.signal.aborted) return { kind: 'later' }
    throw error
  } finally {
    terminal.close()
  }
}
