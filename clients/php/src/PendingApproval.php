<?php

declare(strict_types=1);

namespace Tallystick;

/** A call that waits for a person. */
final class PendingApproval
{
    /**
     * @param array<string, mixed> $input
     * @param list<array{count?: int, roles?: list<string>}> $approvers who may approve; empty if anybody may
     * @param list<array{by: string, roles?: list<string>}> $approvals the people who have approved it; it waits for more
     */
    public function __construct(
        public readonly string $runId,
        public readonly string $toolCallId,
        public readonly string $name,
        public readonly int $attempt,
        public readonly array $input,
        public readonly string $inputDigest,
        public readonly ?string $reason,
        public readonly array $approvers,
        public readonly array $approvals,
    ) {
    }

    /** @param array<string, mixed> $call as the server sends it */
    public static function of(array $call): self
    {
        return new self(
            $call['runId'],
            $call['toolCallId'],
            $call['name'],
            $call['attempt'],
            $call['input'],
            $call['inputDigest'],
            $call['reason'] ?? null,
            $call['approvers'] ?? [],
            $call['approvals'] ?? [],
        );
    }

    /** @return array<string, mixed> what a decision has to name */
    public function question(): array
    {
        return ['toolCallId' => $this->toolCallId, 'attempt' => $this->attempt, 'inputDigest' => $this->inputDigest];
    }
}
