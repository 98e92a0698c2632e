<?php

declare(strict_types=1);

namespace Tallystick;

use Generator;
use GuzzleHttp\Client as Guzzle;
use GuzzleHttp\Psr7\HttpFactory;
use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamFactoryInterface;

/**
 * Speaks to a Tallystick server over HTTP. Commands throw a `Problem` that the server answers; a start or a message that is sent again
 * under the same key takes effect once.
 */
final class Client
{
    private readonly string $url;

    /**
     * @param ClientInterface $http waits at least 30 seconds for an answer
     * @param ClientInterface|null $streaming returns a response before its body has ended, for `events`; such as Guzzle with the
     *     option `stream`. Without it, `events` reads pages.
     */
    public function __construct(
        private readonly ClientInterface $http,
        private readonly RequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
        string $url,
        private readonly string $token,
        private readonly ?ClientInterface $streaming = null,
    ) {
        $this->url = rtrim($url, '/');
    }

    /** A client over Guzzle, which has to be installed. */
    public static function withGuzzle(string $url, string $token): self
    {
        $factory = new HttpFactory();
        $http = new Guzzle(['timeout' => 60, 'connect_timeout' => 10]);
        // The server shows every 15 seconds that an idle stream is alive.
        $streaming = new Guzzle(['stream' => true, 'connect_timeout' => 10, 'read_timeout' => 60]);
        return new self($http, $factory, $factory, $url, $token, $streaming);
    }

    /**
     * Starts a run, once for each key, and returns its id.
     *
     * @param array{sessionId?: string, whenBusy?: string, subject?: string, limits?: array<string, mixed>, tags?: list<string>, metadata?: array<string, mixed>} $options
     */
    public function start(string $agent, string $input, ?string $key = null, array $options = []): string
    {
        $body = ['agent' => $agent, 'input' => $input] + $options;
        return $this->send('POST', '/runs', $body, $key)['runId'];
    }

    /** Waits until a run has stopped: it has ended, or waits for something. */
    public function result(string $runId): Result
    {
        do {
            $result = Result::of($this->send('GET', "/runs/{$this->id($runId)}/result?waitMs=20000"));
        } while ($result->status === 'under_way');
        return $result;
    }

    /**
     * Yields each event of a run after `$after` once, in order, as it is recorded, until the run has ended. The key is its number, from
     * which another process can continue. A stream that breaks is opened again.
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function events(string $runId, int $after = 0): Generator
    {
        $failures = 0;
        while (true) {
            $from = $after;
            try {
                $events = $this->streaming === null ? $this->page($runId, $after) : $this->stream($runId, $after);
                foreach ($events as $event) {
                    $after = $event['seq'];
                    yield $after => $event;
                }
                if ($events->getReturn()) {
                    return;
                }
            } catch (ClientExceptionInterface | StreamBroken $error) {
                if ($after === $from && ++$failures > 5) {
                    throw $error;
                }
            }
            if ($after > $from) {
                $failures = 0;
            } else {
                usleep(500_000);
            }
        }
    }

    /**
     * Approves a call as it was shown: if its input or attempt has changed since, the server refuses. A call is decided once, so a
     * second try after a lost answer is refused as `not_awaiting_approval`, or as `approved_before` where more people have to approve.
     *
     * @param array<string, mixed>|null $input runs in place of the shown one
     * @param array{for: 'session'|'equal_input', expiresInMs: int}|null $standing also approves later calls
     */
    public function approve(string $runId, PendingApproval $call, ?array $input = null, ?string $reason = null, ?array $standing = null): void
    {
        $more = ['input' => $input === null ? null : (object) $input, 'reason' => $reason, 'standing' => $standing];
        $this->send('POST', "/runs/{$this->id($runId)}/approve", $call->question() + $more);
    }

    /** Denies a call. The model reads the reason. */
    public function deny(string $runId, PendingApproval $call, string $reason): void
    {
        $body = $call->question() + ['reason' => $reason];
        $this->send('POST', "/runs/{$this->id($runId)}/deny", $body);
    }

    /** Ends a standing approval, by the id of the call that was approved. */
    public function withdraw(string $runId, string $toolCallId, ?string $reason = null): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/withdraw", ['standing' => $toolCallId, 'reason' => $reason]);
    }

    /** Gives the result of a call whose work was done here. A call that has its result is refused as `not_deferred`. */
    public function settle(string $runId, string $toolCallId, string $result): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/settle", ['toolCallId' => $toolCallId, 'result' => $result]);
    }

    /** Says that the work of a call failed. The model reads why. */
    public function fail(string $runId, string $toolCallId, string $why): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/settle", ['toolCallId' => $toolCallId, 'failed' => $why]);
    }

    /** Takes up a run that no process drives. */
    public function resume(string $runId): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/resume", []);
    }

    /** Stops a run. What is finished stays on record. */
    public function cancel(string $runId, ?string $reason = null): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/cancel", ['reason' => $reason]);
    }

    /** Adds a message that the model reads before its next call. */
    public function steer(string $runId, string $input, ?string $key = null): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/steer", ['input' => $input], $key);
    }

    /** Adds a message that the model reads after its answer. */
    public function queue(string $runId, string $input, ?string $key = null): void
    {
        $this->send('POST', "/runs/{$this->id($runId)}/queue", ['input' => $input], $key);
    }

    /** @return Generator<int, array<string, mixed>, mixed, bool> true once the run has ended */
    private function page(string $runId, int $after): Generator
    {
        $hasEnded = false;
        foreach ($this->send('GET', "/runs/{$this->id($runId)}/events?after=$after")['events'] as $event) {
            $hasEnded = $hasEnded || $event['type'] === 'run_finished';
            yield $event;
        }
        return $hasEnded;
    }

    /** @return Generator<int, array<string, mixed>, mixed, bool> true once the run has ended */
    private function stream(string $runId, int $after): Generator
    {
        $path = "/runs/{$this->id($runId)}/events";
        $request = $this->requests->createRequest('GET', $this->url . $path)
            ->withHeader('authorization', "Bearer {$this->token}")
            ->withHeader('accept', 'text/event-stream')
            ->withHeader('last-event-id', (string) $after);
        $response = $this->streaming->sendRequest($request);
        if ($response->getStatusCode() === 204) {
            return true;
        }
        $this->requireSuccess('GET', $path, $response);
        $hasEnded = false;
        foreach (EventStream::read($response->getBody()) as $data) {
            $event = json_decode($data, true, 512, JSON_THROW_ON_ERROR);
            $hasEnded = $hasEnded || $event['type'] === 'run_finished';
            yield $event;
        }
        return $hasEnded;
    }

    /**
     * @param array<string, mixed>|null $body what is null is left out
     * @return array<string, mixed>
     */
    private function send(string $method, string $path, ?array $body = null, ?string $key = null): array
    {
        $request = $this->requests->createRequest($method, $this->url . $path)->withHeader('authorization', "Bearer {$this->token}");
        if ($key !== null) {
            $request = $request->withHeader('idempotency-key', $key);
        }
        if ($body !== null) {
            $given = array_filter($body, fn (mixed $each): bool => $each !== null);
            $json = json_encode((object) $given, JSON_THROW_ON_ERROR);
            $request = $request->withHeader('content-type', 'application/json')->withBody($this->streams->createStream($json));
        }
        $response = $this->http->sendRequest($request);
        $this->requireSuccess($method, $path, $response);
        return json_decode((string) $response->getBody(), true, 512, JSON_THROW_ON_ERROR);
    }

    private function requireSuccess(string $method, string $path, ResponseInterface $response): void
    {
        $status = $response->getStatusCode();
        if ($status >= 200 && $status < 300) {
            return;
        }
        $problem = json_decode((string) $response->getBody(), true);
        $problem = is_array($problem) ? $problem : [];
        throw new Problem(
            $status,
            (string) ($problem['code'] ?? 'unknown'),
            (string) ($problem['detail'] ?? "$method $path was answered with $status."),
            $problem['kind'] ?? null,
        );
    }

    /** An id is part of a path: what is none must not become another path. */
    private function id(string $runId): string
    {
        return rawurlencode($runId);
    }
}
