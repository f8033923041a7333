// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// Connections for all tasks: what they wait for should be the lock.
const poolSize = 64

// redsync, on go-redis as its README shows it. It waits by trying again after 50 to 250 ms (the
// default), here without an end. WithFailFast is what it offers for low latency when a server is
// slow; it makes a difference with several.
type redsyncSession struct {
	settings
	clients []*goredislib.Client
	sync    *redsync.Redsync
}

type redsyncPlace struct {
	wait  bool
	mutex *redsync.Mutex
}

func dialRedis(url string) (*goredislib.Client, error) {
	options, err := goredislib.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.PoolSize = poolSize
	return goredislib.NewClient(options), nil
}

func openRedsync(s settings) (session, error) {
	session := &redsyncSession{settings: s}
	var pools []redis.Pool
	for _, url := range s.urls {
		client, err := dialRedis(url)
		if err != nil {
			return nil, err
		}
		session.clients = append(session.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	session.sync = redsync.New(pools...)
	return session, nil
}

func (s *redsyncSession) place(lock string) (place, error) {
	mutex := s.sync.NewMutex(lock, redsync.WithExpiry(s.lease), redsync.WithTries(math.MaxInt32),
		redsync.WithFailFast(true))
	return &redsyncPlace{wait: s.wait, mutex: mutex}, nil
}

func (s *redsyncSession) close() {
	for _, client := range s.clients {
		client.Close()
	}
}

func (p *redsyncPlace) acquire(ctx context.Context) (bool, error) {
	if p.wait {
		err := p.mutex.LockContext(ctx)
		return err == nil, err
	}
	err := p.mutex.TryLockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}

func (p *redsyncPlace) release() error {
	_, err := p.mutex.Unlock()
	return err
}
