<?php

declare(strict_types=1);

namespace Tallystick;

/** A call whose work is done outside, until `settle` gives its result. */
final class DeferredCall
{
    /** @param array<string, mixed> $input */
    public function __construct(
        public readonly string $runId,
        public readonly string $toolCallId,
        public readonly string $name,
        public readonly array $input,
        public readonly string $externalId,
    ) {
    }

    /** @param array<string, mixed> $call as the server sends it */
    public static function of(array $call): self
    {
        return new self($call['runId'], $call['toolCallId'], $call['name'], $call['input'], $call['externalId']);
    }
}
