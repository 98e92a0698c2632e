<?php

declare(strict_types=1);

namespace Tallystick;

/** How a run stopped: it has ended, or waits for something. */
final class Result
{
    /**
     * @param 'done'|'suspended'|'interrupted'|'under_way' $status
     * @param list<PendingApproval> $pendingApprovals
     * @param list<DeferredCall> $deferredCalls
     * @param array<string, mixed> $all every field that the server sent
     */
    public function __construct(
        public readonly string $runId,
        public readonly string $status,
        public readonly ?string $reason,
        public readonly string $text,
        public readonly array $pendingApprovals,
        public readonly array $deferredCalls,
        public readonly array $all,
    ) {
    }

    /** @param array<string, mixed> $result as the server sends it */
    public static function of(array $result): self
    {
        return new self(
            $result['runId'],
            $result['status'],
            $result['reason'] ?? null,
            $result['text'] ?? '',
            array_map([PendingApproval::class, 'of'], $result['pendingApprovals'] ?? []),
            array_map([DeferredCall::class, 'of'], $result['deferredCalls'] ?? []),
            $result,
        );
    }
}
