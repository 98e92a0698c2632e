import { Observable } from 'rxjs'
import type { AnyContext } from '../events/agent-definition.ts'
import type { ResultPart, UserPart } from '../events/content.ts'
import type { GivenLimits } from '../events/limits.ts'
import type { ToolEffect } from '../events/model-request.ts'
import {
  createInputReader,
  type InputSchema,
  judgeInput,
  type ReadInput,
  someInputSchema,
} from '../tools/tool-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { ConfigurationError } from '../values/errors.ts'
import { toCanonicalJson, type JsonObject, omitUndefined } from '../values/json.ts'
import {
  requireAnswer,
  fields,
  filledText,
  maybe,
  oneOf,
  plainFunction,
  requireOptions,
  valueThat,
} from '../values/option.ts'
import { type Agent, definedAgent, someLimits } from './agent.ts'

export interface ChildAnswer<Output = unknown> {
  /** The text of its last message, as its parent reads it without `output`. */
  readonly text: string
  /** The answer: its text, or the value that the agent's schema parses from it. */
  readonly output: Output
  /** How many turns and tool calls its run took. */
  readonly turns: number
  readonly toolCalls: number
}

export interface AgentToolOptions<Output = unknown, Schema extends InputSchema = InputSchema> {
  /** Name of the tool. Default: the agent's name, as an identifier. */
  readonly name?: string | undefined
  /** When to use the tool. Default: the agent's own description. */
  readonly description?: string | undefined
  /** `read`: several calls may run at the same time, and share what is left of the limits. Default: `write`. */
  readonly effect?: ToolEffect | undefined
  /** Limits of each child run: they replace those of the agent, within what the parent has left. */
  readonly limits?: GivenLimits | undefined
  /** Schema of what the agent needs to know. Default: a `task` in words. */
  readonly input?: Schema | undefined
  /** Returns the task that the agent reads, from the parsed input. Default: the input as JSON. Pure. */
  readonly task?: ((input: ReadInput<Schema>) => string | readonly UserPart[]) | undefined
  /** Returns what the calling model reads of an answer. Default: its text. Pure, and not async. */
  readonly output?: ((answer: ChildAnswer<Output>) => string | readonly ResultPart[]) | undefined
}

const agentToolOptions = fields<AgentToolOptions>(
  {
    name: maybe(filledText),
    description: maybe(filledText),
    effect: maybe(oneOf(['read', 'write'])),
    limits: maybe(someLimits),
    input: maybe(someInputSchema),
    task: maybe(plainFunction),
    output: maybe(plainFunction),
  },
  {
    parameters: 'input',
    inputBuilder: 'task',
  },
)

/** The task of a child run, or why the input of its call does not fit. */
export type ChildTask = { readonly task: string | readonly UserPart[] } | { readonly fault: string }

/** A tool whose work is done by an agent, in a run of its own. */
export interface AgentTool<in Context = AnyContext> extends Tool<Context> {
  readonly agent: Agent<unknown, Context>
  /** Limits of each child run, which replace those of the agent. */
  readonly limits?: GivenLimits
  /** Returns what the agent reads as its task in a call with this input. */
  readonly toTask: (input: JsonObject) => Promise<ChildTask>
  /** Returns what the calling model reads of an answer. Without it: the text of the answer. */
  readonly toAnswer?: (answer: ChildAnswer) => string | readonly ResultPart[]
}

/**
 * Lets an agent be a tool of another. Each call is a run of its own in the same ledger, with `parent` set: its limits are
 * within what its parent has left, what it uses counts as its parent's, its approvals show at the top, and it is cancelled
 * with it. After a crash the same run is resumed; a second one is never started.
 */
export function agentTool<Output, Context, const Schema extends InputSchema>(
  agent: Agent<Output, Context>,
  options: AgentToolOptions<Output, Schema> = {},
): AgentTool<Context> {
  requireOptions('agentTool', definedAgent, agent, 'the agent')
  requireOptions('agentTool', agentToolOptions, options)
  const { effect = 'write', limits, output } = options
  const name = options.name ?? agent.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
  const description = options.description ?? agent.description
  if (description === undefined) {
    throw new ConfigurationError(
      `The agent ${agent.name} has no description, so no model could tell when to call it. Give the agent or agentTool a description.`,
    )
  }
  return {
    name,
    description,
    effect,
    recovery: 'rerun',
    agent,
    child: agent.name,
    ...omitUndefined({ limits, toAnswer: output as AgentTool['toAnswer'] }),
    ...toInputParts(name, options as AgentToolOptions),
    run: () =>
      new Observable((subscriber) =>
        subscriber.error(
          new ConfigurationError(
            `The tool ${name} is an agent: only a runtime can run it. Give the tool to an agent, and run that.`,
          ),
        ),
      ),
  }
}

/** The input of the tool, and the task that is made of it. */
function toInputParts(
  name: string,
  { input: schema, task }: AgentToolOptions,
): Pick<AgentTool, 'inputSchema' | 'check' | 'toTask'> {
  if (schema === undefined) {
    if (task === undefined) return taskInWords
    throw new ConfigurationError(
      `agentTool (${name}): task was given without input, the schema of its argument. Give both, or neither.`,
    )
  }
  const reader = createInputReader(`the tool ${name}`, schema)
  return {
    inputSchema: reader.jsonSchema,
    check: (input) => judgeInput(reader, input),
    toTask: async (input) => {
      const read = await reader.read(input)
      if ('error' in read) return { fault: read.error }
      if (task === undefined) return { task: toCanonicalJson(input) }
      return { task: requireAnswer(`task of agentTool (${name})`, () => task(read.output), aTask) }
    },
  }
}

const aTask = valueThat(
  'a text, or message parts',
  (value) => typeof value === 'string' || Array.isArray(value),
)

const taskInWords: Pick<AgentTool, 'inputSchema' | 'check' | 'toTask'> = {
  inputSchema: {
    type: 'object',
    properties: {
      task: { type: 'string', description: 'What to do, with all that is needed to know for it.' },
    },
    required: ['task'],
    additionalProperties: false,
  },
  check: ({ task }) =>
    isTask(task) ? { kind: 'run' } : { kind: 'refuse', outcome: 'invalid_input', text: noTask },
  toTask: ({ task }) => Promise.resolve(isTask(task) ? { task } : { fault: noTask }),
}

const noTask = 'task: expected a text that is not empty'

function isTask(task: unknown): task is string {
  return typeof task === 'string' && task.trim() !== ''
}

export function isAgentTool(tool: Tool): tool is AgentTool {
  return tool.child !== undefined && 'agent' in tool
}
