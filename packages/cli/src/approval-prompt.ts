import { createInterface } from 'node:readline/promises'
import type { PendingApproval } from '@tallystick/core'
import type { CommandContext } from './command-context.ts'
import type { ApprovalChoice } from './drive-run.ts'
import { oneLine } from './view/content-text.ts'

const inputCharactersMax = 400

/** Asks the person at the terminal about a call that waits. Whoever leaves (Ctrl-C, Ctrl-D) decides later. */
export async function askForApproval(
  { stdin, questions }: CommandContext,
  { name, input, reason }: PendingApproval,
): Promise<ApprovalChoice> {
  const terminal = createInterface({ input: stdin, output: questions })
  terminal.once('SIGINT', () => terminal.close())
  // Lines are kept until they are asked for, so that whoever types ahead is heard.
  const lines = terminal[Symbol.asyncIterator]()
  const ask = async (question: string): Promise<string | undefined> => {
    terminal.setPrompt(question)
    terminal.prompt()
    const { done, value } = await lines.next()
    return done === true ? undefined : value.trim()
  }
  try {
    const because = reason === undefined ? '' : ` (${reason})`
    const shown = oneLine(JSON.stringify(input), inputCharactersMax)
    for (;;) {
      const answer = await ask(`Run ${name} with ${shown}?${because} [y]es, [n]o, [l]ater: `)
      if (answer === undefined || /^l(ater)?$/i.test(answer)) return { kind: 'later' }
      if (/^y(es)?$/i.test(answer)) return { kind: 'approve' }
      if (!/^no?$/i.test(answer)) continue
      const why = await ask('Why not? The model reads it: ')
      return why === undefined ? { kind: 'later' } : { kind: 'deny', reason: why || 'No reason was given.' }
    }
  } finally {
    terminal.close()
  }
}
