import { option, requireOptions } from '@tallystick/core/internal'
import { anySpan, type Attributes, type AttributeValue, type Span } from './span.ts'

/** A value as OTLP has it in JSON. */
export type OtlpValue =
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly intValue: number }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: readonly OtlpValue[] } }

/** A fact as OTLP has it. */
export interface OtlpAttribute {
  readonly key: string
  readonly value: OtlpValue
}

/** A span as OTLP has it. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly events: readonly {
    readonly name: string
    readonly timeUnixNano: string
    readonly attributes: readonly OtlpAttribute[]
  }[]
  readonly links: readonly {
    readonly traceId: string
    readonly spanId: string
    readonly attributes: readonly OtlpAttribute[]
  }[]
  readonly status: { readonly code: number }
}

/** The body of a request to `/v1/traces`, and a line of a file that the collector reads. */
export interface OtlpTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string }
      readonly spans: readonly OtlpSpan[]
    }[]
  }[]
}

const spanList = option.listOf(anySpan)
const otlpOptions = option.fields<{ readonly serviceName?: string | undefined }>({
  serviceName: option.maybe(option.anyText),
})

/** Returns spans as one request of OTLP over HTTP, in JSON. */
export function toOtlp(
  spans: readonly Span[],
  options: { readonly serviceName?: string | undefined } = {},
): OtlpTraces {
  requireOptions('toOtlp', spanList, spans, 'the list of spans')
  requireOptions('toOtlp', otlpOptions, options)
  const { serviceName = 'tallystick' } = options
  const resource = { attributes: toOtlpAttributes({ 'service.name': serviceName }) }
  return {
    resourceSpans: [
      { resource, scopeSpans: [{ scope: { name: '@tallystick/otel' }, spans: spans.map(toOtlpSpan) }] },
    ],
  }
}

/** Numbers of the protocol. */
const kinds = { internal: 1, client: 3 } as const
const statuses = { unset: 0, error: 2 } as const

function toOtlpSpan(span: Span): OtlpSpan {
  const { traceId, spanId, parentSpanId, name } = span
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: kinds[span.kind],
    startTimeUnixNano: toNanoseconds(span.startedAt),
    endTimeUnixNano: toNanoseconds(span.endedAt),
    attributes: toOtlpAttributes(span.attributes),
    events: span.events.map(({ at, attributes, ...event }) => ({
      ...event,
      timeUnixNano: toNanoseconds(at),
      attributes: toOtlpAttributes(attributes),
    })),
    links: span.links.map(({ attributes, ...link }) => ({
      ...link,
      attributes: toOtlpAttributes(attributes),
    })),
    status: { code: statuses[span.status] },
  }
}

function toOtlpAttributes(attributes: Attributes): readonly OtlpAttribute[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toOtlpValue(value) }))
}

function toOtlpValue(value: AttributeValue): OtlpValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
  return { arrayValue: { values: value.map(toOtlpValue) } }
}

/** A number of 64 bits is a text in JSON. */
function toNanoseconds(at: number): string {
  return String(BigInt(Math.trunc(at)) * 1_000_000n)
}
