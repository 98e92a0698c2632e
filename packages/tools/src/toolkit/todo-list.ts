import type { Ledger, RunId, Tool } from '@tallystick/core'
import {
  option,
  readStart,
  requireOptions,
  type TodoItem,
  readTodoItems,
  formatTodo,
  todoListName,
  todoStates,
} from '@tallystick/core/internal'
import { toVisibleText } from '../define/text.ts'
import { defineTool } from '../define/define-tool.ts'

/** Where lists are read from, and how long one may be. */
export interface TodoListOptions {
  /** The ledger of the runs. */
  readonly ledger: Pick<Ledger, 'read' | 'find'>
  /** The most items of a list, up to 200. Default: 50. */
  readonly maxItems?: number | undefined
}

const { fields, maybe, valueThat } = option
const options = fields<TodoListOptions>({
  ledger: valueThat(
    'the ledger of the runs',
    (value) => typeof (Object(value) as Partial<Ledger>).find === 'function',
  ),
  maxItems: maybe(
    valueThat(
      'a whole number from 1 to 200',
      (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 200,
    ),
  ),
})

const maxTextChars = 200
/** More links between a run and the one whose list it continues than any conversation needs. */
const maxLinks = 50

/**
 * A tool that keeps the to-do list of an agent. Each call gives the whole list and returns it, so the ledger holds
 * every version. A call without items reads the list from the ledger, for example after a compaction has hidden it from
 * the model, or in a later run of the session.
 */
export function todoList(given: TodoListOptions): Tool {
  requireOptions('todoList', options, given)
  const { ledger, maxItems = 50 } = given
  return defineTool({
    name: todoListName,
    description:
      'Keeps your to-do list. Use it for work of several steps: give the whole list at the start, and again ' +
      'whenever an item is begun, is done or comes in addition. Without items it shows the list.',
    input: {
      type: 'object',
      additionalProperties: false,
      properties: {
        items: {
          type: 'array',
          maxItems,
          description: 'The whole list, in order.',
          items: {
            type: 'object',
            required: ['text', 'state'],
            additionalProperties: false,
            properties: {
              text: { type: 'string', minLength: 1, maxLength: maxTextChars },
              state: { enum: todoStates },
            },
          },
        },
      },
    } as const,
    // It changes nothing but the record of its own call.
    effect: 'read',
    serial: todoListName,
    execute: async (input, { runId }) => {
      const { items } = input as { items?: readonly TodoItem[] }
      // Lines of visible text: no item can look like two.
      const given = items?.map(({ text, state }) => ({
        text: toVisibleText(text).replaceAll(/\s+/g, ' ').trim(),
        state,
      }))
      return { items: given ?? (await readItems(ledger, runId)) }
    },
    toModel: (result) => {
      const { items } = result as { items: readonly TodoItem[] }
      return items.length === 0 ? 'The list is empty.' : formatTodo(items).join('\n')
    },
  })
}

/** The last list of a run, or else of the run that it continues. */
async function readItems(ledger: TodoListOptions['ledger'], ownRun: RunId): Promise<readonly TodoItem[]> {
  let run = ownRun
  let last = Infinity
  for (let links = 0; links < maxLinks; links++) {
    const found = await listIn(ledger, run, last)
    if (found) return found
    const parent = (await readStart(ledger, run))?.parent
    if (parent === undefined || parent.relation === 'child') break
    run = parent.runId
    last = parent.relation === 'session' ? Infinity : parent.seq
  }
  return []
}

/** The list that a run has up to an event: an empty one if a list may be hidden, `undefined` if there was none. */
async function listIn(
  ledger: TodoListOptions['ledger'],
  runId: RunId,
  last: number,
): Promise<readonly TodoItem[] | undefined> {
  let items: readonly TodoItem[] | undefined
  for await (const event of ledger.find({ runId, types: listTypes })) {
    if (event.seq > last) break
    // A handoff or an edit may have hidden part of the list: a list from before is not shown again.
    const isHidden =
      event.type === 'history_edited' || (event.type === 'agent_handed_off' && event.messages !== undefined)
    if (isHidden) items = []
    else if (event.type === 'tool_result' && event.name === todoListName) {
      items = readTodoItems(event.content) ?? items
    }
  }
  return items
}

const listTypes = ['tool_result', 'agent_handed_off', 'history_edited'] as const
