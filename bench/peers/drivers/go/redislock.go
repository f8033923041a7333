// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	goredislib "github.com/redis/go-redis/v9"
)

// What the examples of its documentation wait between two tries.
const redislockRetry = 100 * time.Millisecond

// bsm/redislock, on go-redis. An Obtain waits for at most the lease, so a wait without end is a loop.
type redislockSession struct {
	settings
	client *goredislib.Client
	locker *redislock.Client
}

type redislockPlace struct {
	*redislockSession
	name string
	lock *redislock.Lock
}

func openRedislock(s settings) (session, error) {
	client, err := dialRedis(s.urls[0])
	if err != nil {
		return nil, err
	}
	return &redislockSession{settings: s, client: client, locker: redislock.New(client)}, nil
}

func (s *redislockSession) place(lock string) (place, error) {
	return &redislockPlace{redislockSession: s, name: lock}, nil
}

func (s *redislockSession) close() {
	s.client.Close()
}

func (p *redislockPlace) acquire(ctx context.Context) (bool, error) {
	var options *redislock.Options
	if p.wait {
		options = &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockRetry)}
	}
	for {
		lock, err := p.locker.Obtain(ctx, p.name, p.lease, options)
		p.lock = lock
		if !errors.Is(err, redislock.ErrNotObtained) {
			return err == nil, err
		}
		if !p.wait {
			return false, nil
		}
	}
}

func (p *redislockPlace) release() error {
	return p.lock.Release(context.Background())
}
