// Names that other libraries have for the same option: the error names ours.
import { describe, expect, it } from 'vitest'
import {
  agentTool,
  approvalTokens,
  createRuntime,
  defineAgent,
  handoff,
  memoryLedger,
  outputTransform,
} from '@tallystick/core'
import { manualClock, sampleCallId, sampleRunId, scriptedModel } from '@tallystick/testkit'

const sound = { name: 'agent', instructions: 'Act.', model: scriptedModel([]) }
const agent = defineAgent(sound)
const runtime = (options: object = {}) =>
  createRuntime({ ledger: memoryLedger(), host: { clock: manualClock() }, ...options })

const settings = {
  topP: ['top_p', 'nucleus'],
  stop: ['stopSequences', 'stop_sequences'],
  seed: ['randomSeed'],
  providerOptions: ['providerMetadata', 'extraBody', 'topK'],
  maxOutputTokens: ['maxTokens', 'max_tokens'],
  reasoningEffort: ['reasoning', 'effort', 'reasoning_effort'],
}

const limits = {
  maxTurns: ['maxSteps'],
  maxCostUsd: ['budget', 'maxBudgetUsd'],
  maxDurationMs: ['timeoutMs'],
  maxTotalTokens: ['maxTokens'],
  maxTotalInputTokens: ['maxInputTokens'],
  maxTotalOutputTokens: ['maxOutputTokens'],
}

const price = {
  inputUsd: ['prompt', 'inputPrice', 'inputCost', 'input_mtok', 'inputPerMillion'],
  outputUsd: ['completion', 'outputPrice', 'outputCost', 'output_mtok', 'outputPerMillion'],
  cacheReadUsd: ['cached', 'cachedInput', 'cache_read_mtok'],
  cacheWriteUsd: ['cacheCreation', 'cache_write_mtok'],
}

const settingsBeside = {
  'modelSettings.temperature': ['temperature'],
  'modelSettings.topP': ['topP'],
  'modelSettings.seed': ['seed'],
  'modelSettings.stop': ['stop'],
  'modelSettings.providerOptions': ['providerOptions'],
}

const run = {
  ...settingsBeside,
  context: ['ctx', 'deps', 'configurable', 'experimental_context'],
  'limits.maxTurns': ['maxTurns', 'maxSteps', 'recursionLimit'],
  subject: ['userId'],
  signal: ['abortSignal'],
  metadata: ['traceMetadata'],
  workflowName: ['runName'],
  idempotencyKey: ['runId', 'run_id'],
}

const tokens = approvalTokens({ secret: 'x'.repeat(32), audience: 'a' })
const approval = {
  ...{ runId: sampleRunId(1), toolCallId: sampleCallId(sampleRunId(1)), inputDigest: 'a'.repeat(64) },
  ...{ name: 'pay', attempt: 1, input: {} },
}

/** For each place, what is given there under another name, and the names of each option. */
const places: readonly (readonly [
  place: string,
  give: (name: string) => unknown,
  names: Readonly<Record<string, readonly string[]>>,
  prefix: string,
])[] = [
  [
    'an agent',
    (name) => defineAgent({ ...sound, [name]: 1 }),
    {
      ...settingsBeside,
      instructions: ['system', 'systemPrompt', 'prompt'],
      output: ['schema', 'outputType', 'responseFormat', 'output_schema'],
      outputStream: ['experimental_transform'],
      'outputStream.transforms': ['transforms'],
      'limits.maxTurns': ['maxTurns', 'maxSteps'],
      maxOutputTokens: ['maxTokens'],
      'retry.maxAttempts': ['maxRetries'],
      handoffs: ['agents', 'subagents'],
      prepareTurn: ['prepareStep', 'callModelInputFilter', 'hooks'],
      guardrails: ['inputGuardrails', 'outputGuardrails'],
    },
    '',
  ],
  ['limits', (name) => defineAgent({ ...sound, limits: { [name]: 1 } }), limits, 'limits.'],
  [
    'a retry policy',
    (name) => defineAgent({ ...sound, retry: { [name]: 1 } }),
    { maxAttempts: ['maxRetries'] },
    'retry.',
  ],
  [
    'model settings',
    (name) => defineAgent({ ...sound, modelSettings: { [name]: 1 } }),
    settings,
    'modelSettings.',
  ],
  [
    'a price',
    (name) => runtime({ prices: { m: { [name]: 1 } } }),
    { ...price, webSearchUsd: ['webSearch'], longInput: ['tiers'] },
    'prices.m.',
  ],
  [
    'a price of long inputs',
    (name) => runtime({ prices: { m: { inputUsd: 1, outputUsd: 1, longInput: [{ [name]: 1 }] } } }),
    price,
    'prices.m.longInput[0].',
  ],
  [
    'hooks',
    (name) => runtime({ hooks: { [name]: () => {} } }),
    {
      runStarted: ['onAgentStart'],
      runEnded: ['onAgentEnd', 'onFinish'],
      turnEnded: ['onStepFinish'],
      toolStarted: ['onToolStart'],
      toolEnded: ['onToolEnd'],
      modelCallStarted: ['onLlmStart'],
      modelCallEnded: ['onLlmEnd'],
      handoffEnded: ['onHandoff'],
    },
    'hooks.',
  ],
  [
    'an agent as a tool',
    (name) => agentTool(agent, { [name]: 1 }),
    {
      name: ['toolName'],
      description: ['toolDescription'],
      input: ['parameters', 'inputSchema'],
      task: ['inputBuilder'],
      output: ['customOutputExtractor'],
    },
    '',
  ],
  [
    'a handoff',
    (name) => handoff(agent, { [name]: 1 }),
    {
      toolName: ['toolNameOverride'],
      description: ['toolDescriptionOverride'],
      input: ['inputType'],
      filter: ['inputFilter'],
      foldHistory: ['nestHandoffHistory'],
    },
    '',
  ],
  [
    'what is shown of a reply',
    (name) => defineAgent({ ...sound, outputStream: { [name]: 1 } as never }),
    { transforms: ['transform'], nextTurn: ['history'] },
    'outputStream.',
  ],
  [
    'a transform',
    (name) => outputTransform({ [name]: 1 } as never),
    { show: ['transform'], unit: ['by'] },
    '',
  ],
  [
    'a maker of tokens',
    (name) => approvalTokens({ [name]: 1 } as never),
    { secret: ['key', 'secrets'], audience: ['aud'] },
    '',
  ],
  [
    'a token',
    (name) => tokens.issue(approval, { [name]: 1 }),
    { expiresInMs: ['expiresIn', 'ttlMs'], to: ['by'] },
    '',
  ],
  [
    'a run',
    (name) => runtime().run(agent, 'Go.', { [name]: 1 }),
    { ...run, sessionId: ['session', 'threadId', 'thread'] },
    '',
  ],
  [
    'a fork',
    (name) => runtime().fork('r', { [name]: 1 } as never),
    { atSeq: ['at', 'seq'], 'edit.input': ['input'], 'edit.results': ['results'] },
    '',
  ],
]

describe('a name that another library has for an option', () => {
  it.each(places)('of %s is refused with the name that it has here', (_place, give, names, prefix) => {
    for (const [right, others] of Object.entries(names)) {
      for (const name of others) {
        expect(() => give(name)).toThrow(
          `${prefix}${name} is not an option. Did you mean ${prefix}${right}? `,
        )
      }
    }
  })

  it('is refused for a run of a session, too', async () => {
    const chat = runtime().session('chat')
    for (const [right, others] of Object.entries(run)) {
      for (const name of others) {
        await expect(chat.run(agent, 'Go.', { [name]: 1 })).rejects.toThrow(`Did you mean ${right}?`)
      }
    }
  })
})
