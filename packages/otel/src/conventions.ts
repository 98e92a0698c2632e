// The names of the OpenTelemetry conventions for generative AI, here and nowhere else. They are in development and have no
// release: a change there is a change of this file, of its pin, and of the test that lists the names.

/** The commit of https://github.com/open-telemetry/semantic-conventions-genai that the names are from. */
export const conventionsCommit = '024a4f944a1291fcb627c9c47da69e79868dd15e'

/** Operations: `gen_ai.operation.name`, and the beginning of the span's name. */
export const operations = { agent: 'invoke_agent', chat: 'chat', tool: 'execute_tool' } as const

/** Attributes of the conventions. */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  conversationCompacted: 'gen_ai.conversation.compacted',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  seed: 'gen_ai.request.seed',
  stopSequences: 'gen_ai.request.stop_sequences',
  reasoningLevel: 'gen_ai.request.reasoning.level',
  outputType: 'gen_ai.output.type',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCallId: 'gen_ai.tool.call.id',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  instructions: 'gen_ai.system_instructions',
  toolDefinitions: 'gen_ai.tool.definitions',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  tokenModality: 'gen_ai.token.modality',
  errorType: 'error.type',
} as const

/** Names that the conventions do not define. */
export const own = {
  runId: 'tallystick.run.id',
  relation: 'tallystick.run.relation',
  workflow: 'tallystick.run.workflow',
  group: 'tallystick.run.group',
  trace: 'tallystick.run.trace',
  tags: 'tallystick.run.tags',
  finishReason: 'tallystick.run.finish_reason',
  turns: 'tallystick.run.turns',
  toolCalls: 'tallystick.run.tool_calls',
  modelCalls: 'tallystick.run.model_calls',
  turn: 'tallystick.turn',
  attempts: 'tallystick.attempts',
  attempt: 'tallystick.attempt',
  costUsd: 'tallystick.cost_usd',
  purpose: 'tallystick.purpose',
  outcome: 'tallystick.tool.outcome',
  approved: 'tallystick.approval.approved',
  decidedBy: 'tallystick.approval.by',
  reason: 'tallystick.reason',
  name: 'tallystick.name',
  action: 'tallystick.action',
  value: 'tallystick.value',
} as const

/** Metrics of the conventions. */
export const metrics = {
  chatDuration: 'gen_ai.client.inference.duration',
  chatTimeToFirstChunk: 'gen_ai.client.inference.time_to_first_chunk',
  chatInputTokens: 'gen_ai.client.inference.usage.input_tokens',
  chatOutputTokens: 'gen_ai.client.inference.usage.output_tokens',
  chatCacheReadTokens: 'gen_ai.client.inference.usage.cache_read.input_tokens',
  chatCacheWriteTokens: 'gen_ai.client.inference.usage.cache_write.input_tokens',
  chatReasoningTokens: 'gen_ai.client.inference.usage.reasoning.output_tokens',
  agentDuration: 'gen_ai.invoke_agent.duration',
  agentInferenceCalls: 'gen_ai.invoke_agent.inference_calls',
  agentToolCalls: 'gen_ai.invoke_agent.tool_calls',
  toolDuration: 'gen_ai.execute_tool.duration',
} as const
export type MetricName = (typeof metrics)[keyof typeof metrics]

/** The unit of a metric; a counter adds up, any other one is a histogram with these buckets. */
interface MetricKind {
  readonly unit: string
  readonly buckets?: readonly number[]
}

const duration: MetricKind = {
  unit: 's',
  buckets: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
}
const tokens: MetricKind = { unit: '{token}' }

export const metricKinds: Readonly<Record<MetricName, MetricKind>> = {
  [metrics.chatDuration]: duration,
  [metrics.chatTimeToFirstChunk]: duration,
  [metrics.chatInputTokens]: tokens,
  [metrics.chatOutputTokens]: tokens,
  [metrics.chatCacheReadTokens]: tokens,
  [metrics.chatCacheWriteTokens]: tokens,
  [metrics.chatReasoningTokens]: tokens,
  [metrics.agentDuration]: duration,
  [metrics.agentInferenceCalls]: { unit: '{call}', buckets: [1, 2, 4, 8, 16, 32, 64, 128] },
  [metrics.agentToolCalls]: { unit: '{call}', buckets: [1, 2, 4, 8, 16, 32, 64, 128] },
  [metrics.toolDuration]: duration,
}

/** Names that the conventions give to providers, by ours where they differ. */
const providerNames: ReadonlyMap<string, string> = new Map([
  ['azure', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['amazon-bedrock', 'aws.bedrock'],
  ['vertex', 'gcp.vertex_ai'],
  ['gemini', 'gcp.gemini'],
  ['google', 'gcp.gen_ai'],
  ['mistral', 'mistral_ai'],
  ['moonshot', 'moonshot_ai'],
  ['xai', 'x_ai'],
])

/** Returns what the conventions call a provider. */
export function toProviderName(provider: string): string {
  return providerNames.get(provider) ?? provider
}

const finishReasons: Readonly<Record<string, string>> = {
  end: 'stop',
  tool_use: 'tool_call',
  max_tokens: 'length',
  context_exceeded: 'length',
  refused: 'content_filter',
  content_filtered: 'content_filter',
  cancelled: 'error',
  failed: 'error',
}

/** Returns the conventions' word for why a model stopped; our own if they have none. */
export function finishReason(stopReason: string): string {
  return finishReasons[stopReason] ?? stopReason
}
