import { isJsonObject } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'

/** The limits and settings of runs by their first names, which put the word `max` last, and by those of today. */
const names: ReadonlyMap<string, string> = new Map([
  ['turnsMax', 'maxTurns'],
  ['toolCallsMax', 'maxToolCalls'],
  ['toolCallsPerTurnMax', 'maxToolCallsPerTurn'],
  ['callsMaxByTool', 'maxCallsByTool'],
  ['tokensMax', 'maxTotalTokens'],
  ['inputTokensMax', 'maxTotalInputTokens'],
  ['outputTokensMax', 'maxTotalOutputTokens'],
  ['costMaxUsd', 'maxCostUsd'],
  ['durationMaxMs', 'maxDurationMs'],
  ['repeatsMax', 'maxRepeats'],
  ['concurrencyMax', 'maxConcurrency'],
  ['approvalMaxMs', 'maxApprovalMs'],
  ['attemptsMax', 'maxAttempts'],
  ['retryAfterMaxMs', 'maxRetryAfterMs'],
  ['totalMaxMs', 'maxTotalMs'],
  ['contextTokensMax', 'maxContextTokens'],
  ['repairsMax', 'maxRepairs'],
  ['webSearchesMax', 'maxWebSearches'],
])

/** Returns the name of today for a limit; any other value unchanged. */
function renamed<Value>(value: Value): Value | string {
  return typeof value === 'string' ? (names.get(value) ?? value) : value
}

/** Returns a value with the names of today for its own fields; a value that is no object unchanged. */
function withRenamedFields(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [renamed(name), field]))
}

/** Changes those of the named fields that an object has. */
function withChanged(
  object: JsonObject,
  change: (value: unknown) => unknown,
  fields: readonly string[],
): JsonObject {
  const changed = fields.flatMap((field) =>
    Object.hasOwn(object, field) ? [[field, change(object[field])]] : [],
  )
  return { ...object, ...(Object.fromEntries(changed) as JsonObject) }
}

/** An agent definition with the names of today. Its digest stays: the requests on record were digested with it. */
function renamedDefinition(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const own = withRenamedFields(value) as JsonObject
  const models = withChanged(own, withRenamedFields, ['summarizer', 'output'])
  const fallbacks = withChanged(
    models,
    (each) => (Array.isArray(each) ? each.map(withRenamedFields) : each),
    ['fallbacks'],
  )
  return withChanged(fallbacks, renamedPolicy, ['policy'])
}

function renamedPolicy(value: unknown): unknown {
  return isJsonObject(value)
    ? withChanged(value, withRenamedFields, ['limits', 'retry', 'compaction'])
    : value
}

/** The body of an event, or a command, with the names of today for its limits. It keeps what it does not know. */
export function withLimitNames(body: JsonObject): JsonObject {
  const named = withChanged(body, renamed, ['limit'])
  const limited = withChanged(named, withRenamedFields, ['limits', 'retry'])
  return withChanged(limited, renamedDefinition, ['definition'])
}
