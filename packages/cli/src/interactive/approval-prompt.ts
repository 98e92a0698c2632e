import type { PendingApproval } from '@tallystick/core'
import type { Output } from '../terminal/host-output.ts'
import type { ApprovalChoice } from './drive-run.ts'
import { oneLine } from '../view/text/content-text.ts'
import { prettyJson } from '../view/text/pretty-json.ts'
import { wrappedLines } from '../view/text/wrapped-lines.ts'

/** Rows of the terminal that hold no part of the call: the question, and what is typed. */
const rowsKept = 4

/** The question takes one line of the terminal. */
const maxNameCharacters = 30

/** How a decision that is taken here came in. */
const via = 'prompt'

/**
 * Asks the person at the terminal about a call that waits, by its whole canonical input: page by page where it is
 * longer than the screen. Only an answer after the last page approves it, and nothing that was typed before. Ctrl-C
 * and Ctrl-D leave the call undecided.
 */
export async function askForApproval(person: Output, approval: PendingApproval): Promise<ApprovalChoice> {
  const { columns, rows } = person.size()
  const lines = wrappedLines(callText(approval), columns)
  const pageRows = Math.max(1, rows - rowsKept)
  person.reset()
  for (let shown = 0; ;) {
    const page = lines.slice(shown, shown + pageRows)
    if (page.length > 0) person.write(`${page.join('\n')}\n`)
    shown += page.length
    const choice = await (shown < lines.length
      ? askForMore(person, `${shown} of ${lines.length} lines`)
      : askForDecision(person, approval.name))
    if (choice !== undefined) return choice
  }
}

/** The input is printed last, and nothing before it takes more than one line: no reason can look like an input. */
function callText({ name, toolCallId, input, reason }: PendingApproval): string {
  const because = reason === undefined ? '' : `Reason: ${oneLine(reason, Infinity)}\n`
  return `Approval of ${oneLine(name, Infinity)}\nCall: ${toolCallId}\n${because}Input: ${prettyJson(input)}`
}

/** Resolves with `undefined` where more is to be shown. */
async function askForMore(person: Output, seen: string): Promise<ApprovalChoice | undefined> {
  const answer = await person.ask(`-- ${seen}. Enter shows more, [n]o, [l]ater: `)
  return await choiceOf(person, answer)
}

/** Resolves with `undefined` for an answer that is not one of the choices. */
async function askForDecision(person: Output, name: string): Promise<ApprovalChoice | undefined> {
  const answer = await person.ask(
    `Run ${oneLine(name, maxNameCharacters)} with this input? [y]es, [n]o, [l]ater: `,
  )
  if (answer !== undefined && /^y(es)?$/i.test(answer)) return { kind: 'approve', via }
  return await choiceOf(person, answer)
}

async function choiceOf(person: Output, answer: string | undefined): Promise<ApprovalChoice | undefined> {
  if (answer === undefined || /^l(ater)?$/i.test(answer)) return { kind: 'later' }
  if (!/^no?$/i.test(answer)) return undefined
  const why = await person.ask('Why not? The model reads it: ')
  return why === undefined ? { kind: 'later' } : { kind: 'deny', via, reason: why || 'No reason was given.' }
}
