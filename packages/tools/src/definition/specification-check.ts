import { ConfigurationError } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { leastResultChars, type JsonObject, recoveries, toolEffects } from '@tallystick/core/vocabulary'
import { approvalPolicy } from '../approval/approval.ts'
import { retryOptions } from '../execution/retry.ts'
import type { InputSchema } from '../input/schema.ts'
import type { ToolSpecification } from './tool-specification.ts'

const {
  anyFunction,
  fields,
  filledText,
  maybe,
  milliseconds,
  numberFrom,
  oneOf,
  textOr,
  trueOrFalse,
  valueThat,
} = option

const toolOptions = fields<ToolSpecification<JsonObject>>(
  {
    name: valueThat(
      'a text of 1 to 128 characters, each of A-Z a-z 0-9 _ . and -',
      (value) => typeof value === 'string' && /^[A-Za-z0-9_.-]{1,128}$/.test(value),
      { showsText: true },
    ),
    description: filledText,
    input: valueThat('a schema, such as z.object({ … })', (value) => value != null),
    effect: textOr(
      toolEffects,
      valueThat("'read' where it changes nothing outside, else 'write'", () => false),
    ),
    execute: anyFunction,
    repairInput: maybe(trueOrFalse),
    approval: maybe(approvalPolicy),
    recovery: maybe(oneOf(recoveries)),
    timeoutMs: maybe(milliseconds),
    quietMs: maybe(milliseconds),
    retry: maybe(retryOptions),
    serial: maybe(filledText),
    maxConcurrency: maybe(numberFrom(1, { whole: true })),
    repeats: maybe(oneOf(['allowed'])),
    output: maybe(
      valueThat('a schema, such as z.object({ … })', (value) => value != null && typeof value !== 'string'),
    ),
    toModel: maybe(anyFunction),
    maxResultChars: maybe(numberFrom(leastResultChars, { whole: true })),
    reconcile: maybe(anyFunction),
  },
  {
    parameters: 'input',
    schema: 'input',
    inputSchema: 'input',
    args: 'input',
    run: 'execute',
    handler: 'execute',
    func: 'execute',
    invoke: 'execute',
    call: 'execute',
    needsApproval: 'approval',
    requireApproval: 'approval',
    requiresApproval: 'approval',
    outputSchema: 'output',
    toModelOutput: 'toModel',
    heartbeatMs: 'quietMs',
    heartbeatTimeoutMs: 'quietMs',
    idleMs: 'quietMs',
    maxResultSize: 'maxResultChars',
    maxResultSizeChars: 'maxResultChars',
  },
)

/** A definition comes from code that may be JavaScript, so nothing about it is believed. */
export function assertSpecification<Schema extends InputSchema, Context, Output extends InputSchema>(
  specification: ToolSpecification<Schema, Context, Output>,
): void {
  const { name } = Object(specification) as { readonly name?: unknown }
  requireOptions(
    typeof name === 'string' && name ? `The tool ${name}` : 'defineTool',
    toolOptions,
    specification,
  )
  const fault = faultOfRecovery(specification) ?? faultOfRetry(specification)
  if (fault !== undefined) throw new ConfigurationError(`The tool ${specification.name} ${fault}`)
}

function faultOfRecovery<Schema extends InputSchema, Context, Output extends InputSchema>(
  specification: ToolSpecification<Schema, Context, Output>,
): string | undefined {
  const { recovery, reconcile } = specification
  if (recovery === undefined) return undefined
  if (recovery === 'reconcile' && reconcile === undefined) {
    return "has recovery 'reconcile' but no reconcile. Give this function, which looks up whether a call took place."
  }
  if (recovery === 'reconcile' || reconcile === undefined) return undefined
  return `has a reconcile function that recovery '${recovery}' never calls. Leave one of the two out.`
}

function faultOfRetry<Schema extends InputSchema, Context, Output extends InputSchema>({
  retry,
  effect,
  recovery,
}: ToolSpecification<Schema, Context, Output>): string | undefined {
  if (retry === undefined || effect === 'read' || recovery === 'rerun' || retry.when) return undefined
  return (
    'is a write with retry, and a failed write may have taken effect. ' +
    "Give recovery 'rerun' where a call may be made again under the same idempotency key, or retry.when, which answers " +
    'true for the failures that have changed nothing.'
  )
}
