// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const etcdDial = 10 * time.Second

// The concurrency package of etcd. A mutex belongs to its session, so each task has a session;
// many held locks, which have different names, share one.
type etcdSession struct {
	settings
	client *clientv3.Client
	shared *concurrency.Session
}

type etcdPlace struct {
	wait    bool
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func openEtcd(s settings) (session, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: s.urls, DialTimeout: etcdDial})
	if err != nil {
		return nil, err
	}
	return &etcdSession{settings: s, client: client}, nil
}

func (s *etcdSession) place(lock string) (place, error) {
	session := s.shared
	if session == nil {
		var err error
		seconds := int(s.lease / time.Second)
		session, err = concurrency.NewSession(s.client, concurrency.WithTTL(seconds))
		if err != nil {
			return nil, err
		}
		if s.mode == "hold" {
			s.shared = session
		}
	}
	return &etcdPlace{s.wait, session, concurrency.NewMutex(session, "/"+lock)}, nil
}

func (s *etcdSession) close() {
	s.client.Close()
}

func (p *etcdPlace) acquire(ctx context.Context) (bool, error) {
	if p.wait {
		err := p.mutex.Lock(ctx)
		return err == nil, err
	}
	err := p.mutex.TryLock(ctx)
	if errors.Is(err, concurrency.ErrLocked) {
		return false, nil
	}
	return err == nil, err
}

func (p *etcdPlace) release() error {
	select {
	case <-p.session.Done():
		return concurrency.ErrSessionExpired
	default:
		return p.mutex.Unlock(context.Background())
	}
}
