import type { Counter, Histogram, Meter } from '@opentelemetry/api'
import { metricKinds, type MetricName } from '../conventions/names.ts'
import type { Measurement } from '../projection/measurements.ts'

/** Writes measurements through a meter. */
export class MetricWriter {
  readonly #meter: Meter
  readonly #histograms = new Map<MetricName, Histogram>()
  readonly #counters = new Map<MetricName, Counter>()

  constructor(meter: Meter) {
    this.#meter = meter
  }

  write({ metric, value, attributes }: Measurement): void {
    const { unit, buckets } = metricKinds[metric]
    if (buckets === undefined) this.#counter(metric, unit).add(value, { ...attributes })
    else this.#histogram(metric, unit, buckets).record(value, { ...attributes })
  }

  #counter(name: MetricName, unit: string): Counter {
    const counter = this.#counters.get(name) ?? this.#meter.createCounter(name, { unit })
    this.#counters.set(name, counter)
    return counter
  }

  #histogram(name: MetricName, unit: string, buckets: readonly number[]): Histogram {
    const advice = { explicitBucketBoundaries: [...buckets] }
    const histogram = this.#histograms.get(name) ?? this.#meter.createHistogram(name, { unit, advice })
    this.#histograms.set(name, histogram)
    return histogram
  }
}
