import type { Run, RunResult, Runtime } from '@tallystick/core'
import { type AgentTool } from '@tallystick/core/kit'
import { filter } from 'rxjs'
import { type Ending, failureOf, textEnding } from '../../execution/outcome.ts'
import type { ServedCallParts } from './served-call.ts'

/** Has an agent answer a client, in a run of its own that is on record. The client learns which tools it calls. */
export async function servedAgent(
  { agent, name, taskOf, answerOf }: AgentTool,
  runtime: Runtime,
  { input, signal, progress, context }: ServedCallParts,
): Promise<Ending> {
  const given = await taskOf(input)
  if ('fault' in given) {
    return textEnding(
      'invalid_input',
      `The input does not fit the schema of ${name}: ${given.fault}. Nothing was run.`,
    )
  }
  const run: Run = runtime.run(agent, given.task, { context })
  const cancel = (): void => void run.cancel('the client cancelled the call').catch(() => {})
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  const following = run.events$.pipe(filter(({ type }) => type === 'tool_requests_collected')).subscribe({
    next: (event) => {
      if (event.type === 'tool_requests_collected') {
        progress({ message: `calls ${event.calls.map((call) => call.name).join(', ')}` })
      }
    },
    // The result says what went wrong.
    error: () => {},
  })
  try {
    return endingOfRun(await run.result, answerOf)
  } finally {
    following.unsubscribe()
    signal.removeEventListener('abort', cancel)
  }
}

function endingOfRun(result: RunResult, answerOf: AgentTool['answerOf']): Ending {
  const { runId, text, pendingApprovals } = result
  switch (result.status) {
    case 'done': {
      if (result.reason !== 'answered') {
        return textEnding(
          'failed',
          `The agent ended without an answer (${result.reason}). ${text}\nIts run is ${runId}.`,
        )
      }
      if (answerOf !== undefined) return readEnding(result, answerOf)
      const { output = text } = result
      return textEnding('success', typeof output === 'string' ? output : JSON.stringify(output))
    }
    case 'suspended': {
      const waits = pendingApprovals.map((each) => each.name).join(', ')
      const what = waits === '' ? 'a person' : `a person who decides about ${waits}`
      return textEnding(
        'failed',
        `The agent waits for ${what}. Its run is ${runId}: decide there, and ask again.`,
      )
    }
    case 'interrupted':
      return textEnding('failed', `The agent was interrupted. Its run is ${runId}, which can be resumed.`)
  }
}

function readEnding(result: RunResult, answerOf: NonNullable<AgentTool['answerOf']>): Ending {
  const { text, output, turns, toolCalls } = result
  try {
    const read = answerOf({ text, output, turns, toolCalls })
    return typeof read === 'string' ? textEnding('success', read) : { outcome: 'success', content: read }
  } catch (error) {
    return failureOf(error)
  }
}
